"""The resource policy that applies to an action: of its table, or of its stream."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dynactor.actors.table.table import Table
from dynactor.api.access.ask import Ask, Asking
from dynactor.model.access.policy import Policy, parse_policy
from dynactor.model.tables.policy_rules import find

_CACHED_POLICIES: Final = 256
# The parts of a table's ARN, and of the ARNs of its indexes and streams.
_TABLE_PARTS: Final = 2
_PART_OF_TABLE: Final = 4


def resource_policy(asking: Asking, ask: Ask) -> Policy | None:
    """The resource policy for an action, if its resource has one.

    A table's policy applies to its indexes too. A stream has a policy of its own.
    """
    table = ask.facts.table
    if table is None:
        table = _find_table(asking, ask.resource)
    if table is None or not table.definition.policies:
        return None
    parts = ask.resource.split("/")
    label = ""
    if len(parts) == _PART_OF_TABLE:
        if parts[2] == "stream":
            label = parts[3]
        elif parts[2] != "index":
            return None
    attached = find(table.definition.policies, label)
    return None if attached is None else parsed_policy(attached.text)


def _find_table(asking: Asking, resource: str) -> Table | None:
    parts = resource.split("/")
    if len(parts) < _TABLE_PARTS or not parts[0].endswith(":table"):
        return None
    return asking.table_in_any_state(parts[1])


@lru_cache(maxsize=_CACHED_POLICIES)
def parsed_policy(text: str) -> Policy:
    """A resource policy, named by its text, so names are unique; raises ``PolicyError``."""
    return parse_policy(text, text, "resource")
