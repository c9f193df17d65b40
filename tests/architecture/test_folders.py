"""Folders form a tree of floors, as files do: no two folders import each other, in any circle.

A folder is the literal folder of a file, at any depth. The files that lie directly in a folder
with subfolders are a room of their own. Imports inside functions and under TYPE_CHECKING count,
because a reader needs both rooms anyway. A house is the folder right below a floor, with all its
subfolders. Houses are checked separately, so that subfolders can't hide a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.imports import imported_modules
from tests.architecture.overview import folder_of
from tests.architecture.sources import SOURCES


def house_of(module: str) -> str:
    """The folder of a module right below its floor, such as ``api/admin``."""
    return "/".join(folder_of(module).split("/")[:2])


def circle(
    room_of: Callable[[str], str], imports: Iterable[tuple[str, str]]
) -> tuple[str, ...] | None:
    """Rooms that import each other in a circle, or None."""
    graph: dict[str, set[str]] = {}
    for importer, imported in imports:
        room, other = room_of(importer), room_of(imported)
        if room != other:
            graph.setdefault(room, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return None


def all_imports() -> list[tuple[str, str]]:
    """Each import of one module of the product by another."""
    return [(name, module) for name in SOURCES for module in imported_modules(name)]


@pytest.mark.parametrize("room_of", [folder_of, house_of])
def test_no_circle_of_folders_exists(room_of: Callable[[str], str]) -> None:
    found = circle(room_of, all_imports())
    assert found is None, " imports ".join(found)


def test_a_planted_import_is_found() -> None:
    planted = ("dynactor.model.values.item", "dynactor.model.writes.write")
    found = circle(folder_of, [*all_imports(), planted])
    assert found is not None
    assert {"model/values", "model/writes"} <= set(found)
