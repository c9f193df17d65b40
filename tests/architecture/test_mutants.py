"""Planted faults fit the product as it is: where code moves, they move with it."""

from __future__ import annotations

import pytest

from tests.mutants.fault import Fault
from tests.mutants.orders import ORDERS


@pytest.mark.parametrize("fault", ORDERS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted_and_its_tests_are_there(fault: Fault):
    assert fault.problem() is None
