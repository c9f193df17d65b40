"""The table of rules is complete; the service model confirms the reason of each empty cell."""

from __future__ import annotations

from typing import Final

import pytest

from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.requests.call import DYNAMODB
from tests.guards.rules import Cell, EmptyCell, Rule, table
from tests.guards.sites import sites
from tests.guards.table import RULES

_CELLS: Final = list(table(RULES))
_OPERATIONS: Final = sorted({site.operation for site in sites()})


def test_the_table_has_every_operation_on_tables_and_items() -> None:
    served = {name for name, operation in OPERATIONS.items() if operation.service == DYNAMODB}
    assert set(_OPERATIONS) == served
    assert not served & NOT_IMPLEMENTED


def test_the_names_of_rules_and_cells_are_distinct() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    names = [cell.name for cell in _CELLS if isinstance(cell, Cell)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_a_rule_has_a_cell_for_every_operation_with_its_members(rule: Rule) -> None:
    for operation in _OPERATIONS:
        of_both = [
            cell for cell in _CELLS if cell.rule is rule and cell.site.operation == operation
        ]
        has_members = any(
            rule.concerns(member, shape)
            for site in sites()
            if site.operation == operation
            for member, shape in site.members.items()
        )
        assert bool(of_both) == has_members, operation
    assert any(isinstance(cell, Cell) for cell in _CELLS if cell.rule is rule)


def test_the_model_confirms_why_a_cell_is_empty() -> None:
    empty = [cell for cell in _CELLS if isinstance(cell, EmptyCell)]
    assert empty
    assert [cell for cell in empty if not cell.reason.is_true(cell.site, cell.member)] == []
