"""DynamoDB's service model: botocore's, with the operations that only a later version has.

``bulk_operations.json`` has the bulk operations of botocore 1.44.5, without documentation.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from botocore.loaders import Loader
from botocore.model import ServiceModel
from msgspec import json

_LATER: Final = Path(__file__).with_name("bulk_operations.json")


@cache
def service_model(service: str = "dynamodb") -> ServiceModel:
    """The model of ``dynamodb`` or ``dynamodbstreams``."""
    return ServiceModel(plain_model(service), service)


def plain_model(service: str) -> dict[str, Any]:
    """The JSON of a model."""
    model: dict[str, Any] = Loader().load_service_model(service, "service-2")
    if service == "dynamodb":
        later = json.decode(_LATER.read_bytes(), type=dict[str, dict[str, Any]])
        model = {**model, **{part: members | model[part] for part, members in later.items()}}
    return model
