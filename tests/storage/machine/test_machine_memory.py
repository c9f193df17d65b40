"""The memory available to the process: the machine's, or the limit of a control group (v1, v2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.storage.machine.memory import memory_bytes

GIB = 1 << 30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("own", "limits", "least"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "1048576"}, 1 << 20),
        ("0::/\n", {"memory.max": "2097152"}, 2 << 20),
        (
            "4:memory:/a/b\n0::/\n",
            {
                "memory/a/b/memory.limit_in_bytes": "2097152",
                "memory/a/memory.limit_in_bytes": "9223372036854771712",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            2 << 20,
        ),
        # In a container, the process's control group is mounted as the root, and its path doesn't
        # exist.
        ("4:memory:/docker/1234\n", {"memory/memory.limit_in_bytes": "1048576"}, 1 << 20),
        ("3:cpu:/a\n", {"a/memory.max": "1048576"}, None),
        ("0::/a\n", {"a/memory.max": "max"}, None),
    ],
)
def test_the_lowest_limit_is_used(
    tmp_path: Path, own: str, limits: dict[str, str], least: int | None
) -> None:
    write(tmp_path / "own", own)
    for name, text in limits.items():
        write(tmp_path / "cgroups" / name, text + "\n")
    found = memory_bytes(tmp_path / "own", tmp_path / "cgroups")
    assert found == (least or memory_bytes(tmp_path / "none", tmp_path / "none"))


def test_without_control_groups_the_memory_is_the_machines(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path / "none", tmp_path / "none") > GIB // 4
