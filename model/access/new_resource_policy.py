"""Rules for a resource policy that is attached now; attached ones are evaluated whatever they say.

AWS refuses these policies (seen in October 2026). Its messages are known in part; comments mark
what is inferred.
"""

from __future__ import annotations

from typing import Final

from dynactor.model.access.policy import Policy, PolicyStatement
from dynactor.model.errors import ValidationException, invalid_value

_STREAM_ACTIONS: Final = frozenset(
    f"dynamodb:{name}".lower()
    for name in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
)


def check_new(policy: Policy, *, is_of_stream: bool) -> None:
    """Refuse a policy that allows every principal, or names stream actions for a table.

    Raises ``ValidationException`` if the policy is refused.
    """
    for statement in policy.statements:
        if _is_unbounded(statement):
            # The text after "access" is inferred.
            raise ValidationException(
                "Resource-based policy grants unbounded access. Name a principal or give a "
                "condition"
            )
        if is_of_stream:
            continue
        for action in statement.actions:
            if action.literal in _STREAM_ACTIONS:
                # Inferred.
                raise invalid_value(
                    f"Invalid policy document: Action {action.literal} is not supported in the "
                    "policy of a table"
                )


def _is_unbounded(statement: PolicyStatement) -> bool:
    return statement.effect == "Allow" and "*" in statement.principals and not statement.conditions
