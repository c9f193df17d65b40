"""Options of ``dynactor serve``, as annotations of the settings that they set.

An option is defined once, such as
``Annotated[float, Option("--drain-seconds", OptionGroup.PROCESS)]`` on a field of the settings that
use it. The field's default is the option's, and the text below is its
help. ``api/options`` collects all options and builds the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct


class OptionGroup(StrEnum):
    """The groups of options, in the order of the page Configuration."""

    ACCESS = "Addresses and access"
    KEYS = "Keys and policies"
    DATA = "Data"
    COPIES = "Backups and buckets"
    REGIONS = "Regions and compatibility"
    TLS = "TLS"
    ADMIN = "Admin port"
    PROCESS = "Process"
    CALLERS = "Callers of the admin port"
    LIMITS = "Throughput and expiry"
    NODES = "Several nodes"
    TRACES = "Traces"
    KAFKA = "Kafka"
    KAFKA_RECORDS = "Kafka: records"
    KAFKA_DELIVERY = "Kafka: delivery"
    KAFKA_SECURITY = "Kafka: security"
    TEST_TABLES = "For testers: tables and indexes"
    TEST_PARTITIONS = "For testers: partitions and throughput"
    TEST_TIMES = "For testers: streams and clocks"


class Option(Struct, frozen=True):
    """An option. A number without ``parse`` is finite, and at least 0 without other limits."""

    name: str
    group: OptionGroup
    # Makes the field's value from the given one, or raises a ConfigurationError.
    parse: Callable[[Any], Any] | None = None
    # The type and the default of the given value, if they are not the field's own.
    given: Any = UNSET
    default: Any = UNSET
    at_least: float = 0
    above: float | None = None
    at_most: float | None = None
    reason: str = ""
    # The position in the group, after options with a lower one.
    place: int = 0
    is_port: bool = False
    # Whether --no-NAME switches the option off.
    has_negative: bool = False

    @property
    def key(self) -> str:
        """The name as an identifier: ``--data-dir`` is ``data_dir``."""
        return self.name.removeprefix("--").replace("-", "_")


def listed(texts: Iterable[str]) -> tuple[str, ...]:
    """The values of a list, which may be separated by commas too."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())
