"""The house checks itself: floors, circles, what a floor may know of the world."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
# From the ground up: a file imports from its own floor and from those before it.
FLOORS = ("model", "storage", "streams", "actors", "api")

# Nothing in these waits, looks at a clock, draws lots or reaches the outside.
OPEN_TO_MODEL = frozenset(
    {
        "__future__",
        "abc",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "decimal",
        "enum",
        "functools",
        "hashlib",
        "itertools",
        "math",
        "msgspec",
        "operator",
        "re",
        "typing",
    }
)
BUILT_INS_OUTSIDE_OF_MODEL = frozenset({"open", "input", "print", "breakpoint", "hash", "id"})
UNOWNED_TASKS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})


def module_name(path: Path) -> str:
    parts = ("dynactor", *path.relative_to(PROJECT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# The five folders are walked themselves: on Python 3.11, rglob does not follow dynactor's links.
SOURCES = {
    module_name(path): path for floor in FLOORS for path in sorted((PROJECT / floor).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in SOURCES.items()}


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Every name a file imports, as ``package.module`` or ``package.module.name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_modules(name: str) -> set[str]:
    """The files of the project that a file imports."""
    found = set()
    for imported in imported_names(TREES[name]):
        module = imported if imported in SOURCES else imported.rpartition(".")[0]
        if module in SOURCES:
            found.add(module)
    return found


def floor_of(module: str) -> int:
    """The height of a module's floor."""
    return FLOORS.index(module.split(".")[1])


def called_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def test_there_is_something_to_check():
    assert {name.split(".")[1] for name in SOURCES} == set(FLOORS)
    assert imported_modules("dynactor.api.operations.create_table") >= {
        "dynactor.api.requests.table_arn",
        "dynactor.model.tables.table_rules",
    }


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_imports_upward(name: str):
    height = floor_of(name)
    assert [module for module in imported_modules(name) if floor_of(module) > height] == []


def test_no_files_import_each_other_in_a_circle():
    try:
        TopologicalSorter({name: imported_modules(name) for name in SOURCES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("name", [name for name in SOURCES if SOURCES[name].stem == "__init__"])
def test_a_package_file_holds_a_docstring_only(name: str):
    assert ast.get_docstring(TREES[name])
    assert len(TREES[name].body) == 1


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_says_what_it_is(name: str):
    assert ast.get_docstring(TREES[name])


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("dynactor.model")])
def test_the_ground_floor_is_pure(name: str):
    tree = TREES[name]
    imported = {module.partition(".")[0] for module in imported_names(tree)}
    assert imported - {"dynactor"} <= OPEN_TO_MODEL
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called & BUILT_INS_OUTSIDE_OF_MODEL == set()
    waits = ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith
    assert not any(isinstance(node, waits) for node in ast.walk(tree))


def test_one_place_alone_knows_the_storage_engine():
    knowing = {
        name
        for name in SOURCES
        if any(module.partition(".")[0] == "rocksdict" for module in imported_names(TREES[name]))
    }
    assert knowing
    assert all(name.startswith("dynactor.storage.rocks") for name in knowing)


def test_one_place_alone_knows_the_client_of_the_broker():
    knowing = {
        name
        for name in SOURCES
        if any(module.partition(".")[0] == "aiokafka" for module in imported_names(TREES[name]))
    }
    assert knowing == {"dynactor.streams.kafka"}


def test_the_client_of_the_broker_is_imported_only_where_there_is_one():
    importing = {
        name
        for name in SOURCES
        for node in TREES[name].body
        if isinstance(node, ast.ImportFrom) and node.module == "dynactor.streams.kafka"
    }
    assert importing == set()


@pytest.mark.parametrize("name", SOURCES)
def test_every_task_has_somebody_who_waits_for_it(name: str):
    assert set(called_names(TREES[name])) & UNOWNED_TASKS == set()


def test_the_tests_hide_no_package_of_the_project():
    # With a tests/__init__.py, pytest's import mode would give the tests other names.
    assert list((PROJECT / "tests").rglob("__init__.py")) == []


def test_one_place_alone_words_the_envelope_of_request_errors():
    # ``dynactor.api.requests.layers`` knows how each operation's layer words, orders and counts its
    # faults.
    texts = {name: path.read_text() for name, path in SOURCES.items()}
    assert {name for name, text in texts.items() if "validation error" in text} == {
        "dynactor.api.requests.layers"
    }
    assert texts["dynactor.api.requests.layers"].count("validation error detected") == 1
