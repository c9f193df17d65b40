"""The explanation of decisions of policies, in a header of the answer.

The header is one line of ASCII: JSON with names in the style of DynamoDB's API. Clients and proxies
limit a head to 4 or 8 KB. A longer explanation has only the first denied action, then only the
statements that apply, and at last only the decision.
"""

from __future__ import annotations

import json
from typing import Final

from msgspec import Struct, structs, to_builtins

from dynactor.api.answers.explain import EXPLANATION_BYTES
from dynactor.model.access.explanation import Decision

REQUEST_HEADER: Final = "X-Dynactor-Explain-Access"
RESPONSE_HEADER: Final = "X-Dynactor-Access-Explanation"
# More decisions would not fit.
MOST_DECISIONS: Final = 10


class AccessExplanation(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The decision on a request, and the decisions on its actions, denied ones first.

    ``action_count`` counts all actions, also those that are left out.
    """

    decision: str
    principal: str
    action_count: int
    executed_anyway: bool = False
    actions: tuple[Decision, ...] = ()


def header_text(explanation: AccessExplanation) -> str:
    """The header's text, at most ``EXPLANATION_BYTES`` long."""
    first = explanation.actions[:1]
    for actions in (explanation.actions, first, tuple(map(_shortened, first)), ()):
        text = _encode(structs.replace(explanation, actions=actions))
        if len(text) <= EXPLANATION_BYTES:
            return text
    raise AssertionError("the shortest form has no text of a client except the session's name")


def _shortened(decision: Decision) -> Decision:
    """A decision with only those statements that apply."""
    applying = tuple(one for one in decision.statements if not one.reason)
    return structs.replace(decision, statements=applying)


def _encode(explanation: AccessExplanation) -> str:
    return json.dumps(to_builtins(explanation), separators=(",", ":"))
