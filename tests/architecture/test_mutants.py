"""Each fault of ``tests/mutants`` can be planted in the current code, and names existing tests."""

from __future__ import annotations

import pytest

from tests.mutants.guards import guards
from tests.mutants.not_decisive import NOT_DECISIVE
from tests.mutants.order import Order
from tests.mutants.orders import ORDERS


@pytest.mark.parametrize("fault", ORDERS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted_and_its_tests_exist(fault: Order):
    assert fault.problem() is None


def test_guards_that_are_listed_as_not_decisive_exist():
    assert {str(guard) for guard in guards()} >= NOT_DECISIVE.keys()
