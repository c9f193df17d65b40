"""Members that CreateTable and UpdateTable share, as the model takes them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from api.structures import ProvisionedThroughputShape
from model.table import Throughput


def throughput(shape: ProvisionedThroughputShape | None) -> Throughput | None:
    """The provisioned throughput of a request."""
    return None if shape is None else Throughput(shape.ReadCapacityUnits, shape.WriteCapacityUnits)


def given(shape: Struct | None) -> dict[str, Any] | None:
    """A structure as a dict of those members that the request gave."""
    if shape is None:
        return None
    return {name: value for name, value in asdict(shape).items() if value is not None}
