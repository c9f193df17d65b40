"""Prints the structure of the product: floors, rooms, imports, the longest functions and files.

    python -m tests.architecture.overview

Each layer's rooms are listed bottom up; the number of a room's floor is one more than the highest
floor below that it imports from. A circle of folders is printed first, if one exists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final

from tests.architecture.imports import imported_modules
from tests.architecture.sources import FLOORS, PROJECT, SOURCES, text_of, tree

MOST_FUNCTION_LINES: Final = 60
MOST_FILE_LINES: Final = 500
_WIDEST: Final = 10


def folder_of(module: str) -> str:
    """The folder of a module, such as ``api/admin/metrics``."""
    return SOURCES[module].parent.relative_to(PROJECT).as_posix()


def folder_imports() -> dict[str, set[str]]:
    """The folders that each folder imports from."""
    graph: dict[str, set[str]] = {folder_of(name): set() for name in SOURCES}
    for name in SOURCES:
        graph[folder_of(name)] |= {folder_of(module) for module in imported_modules(name)}
    for folder, others in graph.items():
        others.discard(folder)
    return graph


def floors(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """The number of each folder's floor within its layer.

    Raises:
        CycleError: folders import each other in a circle.
    """
    found: dict[str, int] = {}
    for folder in TopologicalSorter(graph).static_order():
        layer = folder.split("/")[0]
        below = [found[other] for other in graph[folder] if other.split("/")[0] == layer]
        found[folder] = 1 + max(below, default=-1)
    return found


def long_functions() -> Iterator[tuple[int, str]]:
    """Functions with more lines than a reader keeps in mind, with their number of lines."""
    for name in SOURCES:
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    yield lines, f"{_path(name)}: {node.name}"


def long_files() -> Iterator[tuple[int, str]]:
    """Files with more lines than a reader overlooks, with their number of lines."""
    for name in SOURCES:
        lines = text_of(SOURCES[name]).count("\n")
        if lines > MOST_FILE_LINES:
            yield lines, _path(name)


def _path(name: str) -> str:
    return SOURCES[name].relative_to(PROJECT).as_posix()


def _print_rooms(graph: Mapping[str, set[str]]) -> None:
    lines = dict.fromkeys(graph, 0)
    files = dict.fromkeys(graph, 0)
    for name, path in SOURCES.items():
        lines[folder_of(name)] += text_of(path).count("\n")
        files[folder_of(name)] += 1
    heights = floors(graph)
    for layer in FLOORS:
        rooms = sorted(
            (room for room in graph if room.split("/")[0] == layer),
            key=lambda room: (heights[room], room),
        )
        print(f"\n{layer}: {sum(lines[room] for room in rooms):,} lines")
        for room in rooms:
            print(f"  {heights[room]:2}  {room:28} {files[room]:3} files {lines[room]:6,} lines")


def main() -> None:
    """Print the structure."""
    graph = folder_imports()
    pairs = [(a, b) for a in graph for b in graph[a] if a < b and a in graph[b]]
    print(f"{len(pairs)} pairs of folders import each other", *pairs, sep="\n  ")
    try:
        _print_rooms(graph)
    except CycleError as error:
        print("circle:", " imports ".join(reversed(error.args[1])))
    widest = sorted(((len(imported_modules(name)), _path(name)) for name in SOURCES), reverse=True)
    for title, rows in (
        ("Widest imports", widest[:_WIDEST]),
        (f"Functions of more than {MOST_FUNCTION_LINES} lines", sorted(long_functions())[::-1]),
        (f"Files of more than {MOST_FILE_LINES} lines", sorted(long_files())[::-1]),
    ):
        print(f"\n{title}")
        for count, place in rows:
            print(f"  {count:5} {place}")


if __name__ == "__main__":
    main()
