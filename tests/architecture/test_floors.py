"""The architecture's rules: floors, import cycles, and access to the outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.imports import imported_modules, imported_names, nodes
from tests.architecture.sources import FLOORS, PROJECT, SOURCES, text_of, tree

# The only modules that model/ may import: none of them waits, does I/O, or is random.
OPEN_TO_MODEL = frozenset(
    {
        "__future__",
        "abc",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "csv",
        "decimal",
        "enum",
        "functools",
        "hashlib",
        "ipaddress",
        "itertools",
        "math",
        "msgspec",
        "operator",
        "re",
        "typing",
    }
)
BUILT_INS_OUTSIDE_OF_MODEL = frozenset({"open", "input", "print", "breakpoint", "hash", "id"})
MODEL = [name for name in SOURCES if name.startswith("dynactor.model")]
RANDOM = frozenset({"os.urandom", "random.SystemRandom", "uuid.uuid1", "uuid.uuid4"})
UNOWNED_TASKS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})


def imports_package(name: str, package: str) -> bool:
    """Whether a module imports anything from a top-level package."""
    return any(imported.partition(".")[0] == package for imported in imported_names(name))


def floor_of(module: str) -> int:
    """The height of a module's floor."""
    return FLOORS.index(module.split(".")[1])


def called_names(name: str) -> Iterator[str]:
    for node in nodes(name):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def test_source_files_are_found():
    assert {name.split(".")[1] for name in SOURCES} == set(FLOORS)
    assert MODEL
    assert imported_modules("dynactor.api.operations.create_table") >= {
        "dynactor.api.requests.table_arn",
        "dynactor.model.tables.table_rules",
    }


def test_nothing_imports_upward():
    upward = [
        (name, module)
        for name in SOURCES
        for module in imported_modules(name)
        if floor_of(module) > floor_of(name)
    ]
    assert upward == []


def test_no_import_cycle_exists():
    try:
        TopologicalSorter({name: imported_modules(name) for name in SOURCES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_package_file_holds_a_docstring_only():
    packages = [name for name, path in SOURCES.items() if path.stem == "__init__"]
    assert packages
    assert [name for name in packages if len(tree(name).body) != 1] == []


def test_every_file_has_a_docstring():
    assert [name for name in SOURCES if not ast.get_docstring(tree(name))] == []


def test_model_imports_only_pure_modules():
    waits = ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith
    for name in MODEL:
        imported = {module.partition(".")[0] for module in imported_names(name)}
        assert imported - {"dynactor"} - OPEN_TO_MODEL == set(), name
        called = {
            node.func.id
            for node in nodes(name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert called & BUILT_INS_OUTSIDE_OF_MODEL == set(), name
        assert [ast.unparse(node) for node in nodes(name) if isinstance(node, waits)] == [], name


def test_only_one_folder_imports_the_storage_engine():
    knowing = {name for name in SOURCES if imports_package(name, "rocksdict")}
    assert knowing
    assert all(name.startswith("dynactor.storage.rocks") for name in knowing)


def test_only_one_folder_imports_postgresql():
    knowing = {name for name in SOURCES if imports_package(name, "asyncpg")}
    assert knowing
    assert all(name.startswith("dynactor.storage.postgresql") for name in knowing)


def test_postgresql_is_imported_only_where_it_is_the_store():
    importing = {
        name
        for name in SOURCES
        if not name.startswith("dynactor.storage.postgresql")
        for node in tree(name).body
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("dynactor.storage.postgresql")
    }
    assert importing == set()


def test_only_one_module_imports_aiokafka():
    knowing = {name for name in SOURCES if imports_package(name, "aiokafka")}
    assert knowing == {"dynactor.streams.kafka.aiokafka_broker"}


def test_no_module_imports_the_kafka_broker_at_its_top_level():
    importing = {
        name
        for name in SOURCES
        for node in tree(name).body
        if isinstance(node, ast.ImportFrom)
        and node.module == "dynactor.streams.kafka.aiokafka_broker"
    }
    assert importing == set()


def test_every_task_is_awaited():
    for name in SOURCES:
        assert set(called_names(name)) & UNOWNED_TASKS == set(), name


def test_no_folder_of_tests_shadows_a_package_of_the_project():
    # With a tests/__init__.py, pytest's import mode would rename the test modules.
    assert list((PROJECT / "tests").rglob("__init__.py")) == []


def test_only_one_module_formats_the_validation_errors_of_requests():
    # ``dynactor.api.requests.validation_errors`` has each operation's messages, order and number of
    # faults.
    texts = {name: text_of(path) for name, path in SOURCES.items()}
    assert {name for name, text in texts.items() if "validation error" in text} == {
        "dynactor.api.requests.validation_errors"
    }
    assert texts["dynactor.api.requests.validation_errors"].count("validation error detected") == 1


def test_actors_draw_from_the_environments_source_of_randomness():
    """A module may import a random function by name, but a seed must determine all values."""
    sources = {"dynactor.actors.runtime.randomness", "dynactor.actors.table.environment"}
    drawing = {
        f"{name}: {imported}"
        for name in SOURCES
        if name.startswith("dynactor.actors") and name not in sources
        for imported in imported_names(name)
        if imported in RANDOM
        or imported in ("random", "uuid", "secrets")
        or imported.startswith("secrets.")
        or (imported.startswith("random.") and imported != "random.Random")
    }
    assert not drawing
