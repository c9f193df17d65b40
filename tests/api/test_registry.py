"""Operations that change nothing. A node sends them to the home again after a lost answer."""

from __future__ import annotations

from typing import Final

from dynactor.api.registry import OPERATIONS, is_read

# The first words of the operations that may change something.
CHANGES: Final = (
    "BatchExecute",
    "BatchWrite",
    "Cancel",
    "Create",
    "Delete",
    "Disable",
    "Enable",
    "Execute",
    "Export",
    "Import",
    "Put",
    "Restore",
    "Start",
    "Tag",
    "TransactWrite",
    "Untag",
    "Update",
)


def test_each_operation_either_reads_or_may_change_something() -> None:
    for operation in OPERATIONS.values():
        assert is_read(operation.target) != operation.name.startswith(CHANGES), operation.name


def test_a_request_without_an_operation_is_no_read() -> None:
    assert not any(map(is_read, ("", "Get", "DynamoDB_20120810.", "GetItem.DynamoDB_20120810")))
