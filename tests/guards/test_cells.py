"""Each rule is enforced at every applicable member of the service model."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from tests.guards.rules import Cell, table
from tests.guards.run import fault_of
from tests.guards.sites import Site, sites
from tests.guards.table import RULES
from tests.guards.valid_requests import TABLE, base, prepare
from tests.support.clients.clients import WireClient

pytestmark = pytest.mark.differs_from_dynamodb_local("its words and stages are others")

_OPERATIONS: Final = sorted({site.operation for site in sites()})


@cache
def _cells() -> tuple[Cell, ...]:
    return tuple(cell for cell in table(RULES) if isinstance(cell, Cell))


@pytest.fixture(scope="module")
def prepared(wire: WireClient) -> WireClient:
    """The server, with the tables of the cells."""
    prepare(wire)
    return wire


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_a_request_that_breaks_a_rule_is_refused(prepared: WireClient, operation: str) -> None:
    faults = {
        cell.name: fault
        for cell in _cells()
        if cell.site.operation == operation and (fault := fault_of(cell, prepared)) is not None
    }
    assert faults == {}


_OF_ITEMS: Final = [
    site
    for site in sites()
    if base(site).keys() & {"Item", "Key", "Keys", "Statement"}
    or site.operation in ("Query", "Scan")
]


@pytest.mark.parametrize("site", _OF_ITEMS, ids=[site.name for site in _OF_ITEMS])
def test_a_valid_request_for_the_same_site_is_accepted(prepared: WireClient, site: Site) -> None:
    answer = prepared(site.operation, site.enclosed(TABLE, base(site)))
    assert not any("Error" in one for one in answer.get("Responses", ()) if isinstance(one, dict))
