"""The settings of limits, and the mode of a table's limits."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.limits import BURST_SECONDS
from dynactor.model.tables.tag_rules import THROTTLING_TAG
from dynactor.model.throttling.table_limits import ThrottlingMode
from dynactor.model.throttling.throttling_setting import ThrottlingSetting

_MODES: Final[dict[str, ThrottlingMode]] = {
    "enforce": "enforce",
    "observe": "observe",
    "off": "off",
}


class ThrottleSettings(Struct, frozen=True):
    """The settings for the limits of all tables; ``arn_prefix`` is the prefix of tables' ARNs."""

    setting: ThrottlingSetting = "auto"
    arn_prefix: str = "arn:aws:dynamodb:us-east-1:000000000000:table/"
    # Whether some requests are counted by key while Contributor Insights is off.
    key_traffic: bool = True
    # The unused units of a new provisioned table, in seconds.
    initial_burst_seconds: float = BURST_SECONDS


def throttling_mode(definition: TableDefinition, setting: ThrottlingSetting) -> ThrottlingMode:
    """The mode of a table's limits: its tag, or the server's setting."""
    wanted = dict(definition.tags).get(THROTTLING_TAG, setting)
    by_billing_mode: ThrottlingMode = (
        "enforce" if definition.billing_mode == "PROVISIONED" else "observe"
    )
    return _MODES.get(wanted, by_billing_mode)
