"""The operations of the API, and the names of operations that are not implemented."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from dynactor.api import operations
from dynactor.api.execution.operation import Operation


def _operations(module: str) -> tuple[Operation, ...]:
    """The operations that a file of ``dynactor.api.operations`` defines, nearly always one."""
    names = vars(import_module(f"{operations.__name__}.{module}"))
    found: tuple[Operation, ...] = names.get("OPERATIONS") or (names["OPERATION"],)
    return found


OPERATIONS: Final = {
    operation.name: operation
    for module in iter_modules(operations.__path__)
    for operation in _operations(module.name)
}
# By the X-Amz-Target headers of their requests.
TARGETS: Final = {operation.target: operation for operation in OPERATIONS.values()}

# The other operations of DynamoDB's service models (2012-08-10), compared by a test.
NOT_IMPLEMENTED: Final = frozenset(("SearchVectors",))


def is_read(target: str) -> bool:
    """Whether the operation of a target changes nothing. An unknown one may change something."""
    operation = TARGETS.get(target)
    return operation is not None and operation.is_read
