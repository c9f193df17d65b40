"""Faults: operations that do not call a guard.

A cell of ``tests/guards`` must find each fault.

python -m tests.mutants.forgotten_guards [name ...]
"""

from __future__ import annotations

import sys
from typing import Final

from tests.mutants.fault import Fault
from tests.mutants.run import main

_CELLS: Final = "tests/guards/test_cells.py"
_CELL: Final = "test_a_request_that_breaks_a_rule_is_refused"

FORGOTTEN_GUARDS: Final = (
    Fault(
        "PutItem forgets that keys are scalars",
        "api/operations/put_item.py",
        "        check_scalar_keys(definition, nested)\n",
        "        pass\n",
        _CELLS,
        [f"{_CELL}[scalar keys-PutItem-ConditionExpression]"],
    ),
    Fault(
        "DeleteItem forgets that keys are scalars",
        "api/operations/delete_item.py",
        "    check_scalar_keys(table.definition, nested)\n",
        "",
        _CELLS,
        [f"{_CELL}[scalar keys-DeleteItem-ConditionExpression]"],
    ),
    Fault(
        "UpdateItem forgets how deep its result may nest",
        "model/writes/write.py",
        "    _check_depth(item, written)\n",
        "",
        _CELLS,
        [f"{_CELL}[nesting of results-UpdateItem-UpdateExpression]"],
    ),
)

if __name__ == "__main__":
    sys.exit(main(FORGOTTEN_GUARDS))
