"""Pairs of guard and operation where removing the guard changes nothing, with the reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.guards.sites import holds_values, sites


class NotDecisive(NamedTuple):
    """Why a guard refuses no request of the operations that ``applies`` selects."""

    reason: str
    applies: Callable[[str], bool]


def _has_no_values(operation: str) -> bool:
    return not any(
        holds_values(shape)
        for site in sites()
        if site.operation == operation
        for shape in site.members.values()
    )


def _has_a_list_of_statements(operation: str) -> bool:
    return any(
        site.operation == operation and "[]" in site.path and "Statement" in site.members
        for site in sites()
    )


_ONE_ITEM: Final = NotDecisive(
    "a SELECT in a batch or a transaction names one item, which is checked before",
    _has_a_list_of_statements,
)
_TEMPORARY_STATE: Final = NotDecisive(
    "it decides while a table or an index is in a temporary state: "
    "tests/wire/tables/test_transitions.py "
    "and tests/rules/global_indexes/test_index_phases.py",
    lambda operation: operation == "UpdateTable",
)
_OF_CONNECTIONS: Final = NotDecisive(
    "it looks at the head of a request, whatever the operation: "
    "tests/wire/http/test_http_protocol.py "
    "and tests/api/http/test_refused_by_head.py",
    lambda _operation: True,
)

NOT_DECISIVE: Final[dict[str, tuple[NotDecisive, ...]]] = {
    "dynactor.api.requests.input_decoder.InputDecoder.check_serialization": (
        NotDecisive("without attribute values the decoder sees all JSON types", _has_no_values),
        NotDecisive(
            "each statement of a batch looks at its own parameters",
            lambda operation: operation == "BatchExecuteStatement",
        ),
    ),
    "dynactor.api.http.protocol._check_authorization": (_OF_CONNECTIONS,),
    "dynactor.api.http.protocol.Protocol._check_head": (_OF_CONNECTIONS,),
    "dynactor.model.tables.changes_in_progress.check": (_TEMPORARY_STATE,),
    "dynactor.model.tables.global_index_phases._check_alone": (_TEMPORARY_STATE,),
    "dynactor.model.partiql.read_plan._check_filter_types": (_ONE_ITEM,),
    "dynactor.model.partiql.read_plan._check_may_be_ordered": (_ONE_ITEM,),
    "dynactor.model.partiql.read_plan._check_order": (_ONE_ITEM,),
}


def is_decisive(guard: str, operation: str) -> bool:
    """Whether removing a guard must make the operation fail."""
    return not any(one.applies(operation) for one in NOT_DECISIVE.get(guard, ()))
