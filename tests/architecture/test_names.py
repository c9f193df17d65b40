"""A class name has one meaning in the product, and no name needs its place to be understood.

The exceptions are a ratchet: remove a name when it is settled, and never add one.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.architecture.sources import SOURCES, tree

# Names of two or more classes. An underscore at the start does not make a name another one.
SHARED: Final = frozenset(
    {
        "Claim",
        "Conditional",
        "Delete",
        "Exists",
        "File",
        "Group",
        "Insert",
        "Member",
        "Node",
        "Order",
        "Outcome",
        "Page",
        "PageRequest",
        "Pair",
        "Part",
        "Parts",
        "Path",
        "Prepared",
        "Refused",
        "Resource",
        "Rows",
        "Rule",
        "Select",
        "Source",
        "State",
        "Statement",
        "Stored",
        "Summary",
        "Taken",
        "TransferFailed",
        "Update",
        "Violation",
        "Written",
    }
)
# Identifiers that begin with ``of_`` or end in ``_of``, such as ``of_table`` or ``key_of``.
INCOMPLETE: Final = frozenset(
    {
        "_faults_of",
        "_logs_of",
        "_of_authority",
        "_of_clock",
        "_of_policies",
        "_range_of",
        "_row_of",
        "_rows_of",
        "_text_of",
        "_time_of",
        "_write_of",
        "check_of",
        "compression_of",
        "condition_of",
        "delete_of",
        "end_of",
        "export_of",
        "fault_of",
        "files_of",
        "index_of",
        "label_of",
        "line_of",
        "of_all",
        "of_index",
        "of_it",
        "of_item",
        "of_items",
        "of_key_condition",
        "of_log",
        "of_objects",
        "of_part",
        "of_partition",
        "of_reads",
        "of_resource",
        "of_results",
        "of_role",
        "of_rule",
        "of_segment",
        "of_session",
        "of_table",
        "owner_of",
        "period_of",
        "policy_of",
        "put_of",
        "reason_of",
        "settings_of",
        "state_of",
        "status_of",
        "streams_of",
        "task_of",
        "type_of",
        "update_of",
        "warm_of",
    }
)


def classes() -> dict[str, list[str]]:
    """The modules of each class, by the class's name without an underscore at its start."""
    found = defaultdict(list)
    for module in SOURCES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(module)
    return found


def identifiers() -> Iterator[str]:
    """The names that the product gives to functions, arguments, variables and attributes."""
    for module in SOURCES:
        for node in ast.walk(tree(module)):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.arg(arg=name):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name


def is_incomplete(name: str) -> bool:
    """Whether a name is about a thing that it does not say."""
    words = name.strip("_").lower()
    return words.startswith("of_") or words.endswith("_of")


def test_a_class_name_occurs_once_in_the_product():
    shared = {name: modules for name, modules in classes().items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in SHARED} == {}


def test_no_name_begins_with_of_or_ends_in_of():
    incomplete = set(filter(is_incomplete, identifiers()))
    assert incomplete - INCOMPLETE == set()


def test_incomplete_names_are_found():
    assert list(map(is_incomplete, ("of_table", "_key_of", "_OF_AWS"))) == [True] * 3
    assert list(map(is_incomplete, ("offset", "proof", "key", "part_of_key"))) == [False] * 4
