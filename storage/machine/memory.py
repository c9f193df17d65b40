"""The memory that this process may use: the machine's, or the limit of its control group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUPS: Final = Path("/proc/self/cgroup")


def memory_bytes(own: Path = _OWN_CGROUPS, cgroups: Path = _CGROUPS) -> int:
    """The minimum of the machine's memory and the limits of the process's control groups."""
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine_bytes, *_limits(own, cgroups)])


def _limits(own: Path, cgroups: Path) -> Iterator[int]:
    """The limits of the process's control groups and their parents, for cgroup v1 and v2."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, file = cgroups, "memory.max"
        elif controllers == "memory":
            root, file = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container, the root may be the process's own group. Then the named group has no file.
        group = root / name.lstrip("/")
        for each in (group, *group.parents):
            try:
                text = (each / file).read_text().strip()
            except OSError:
                text = ""
            # "max" means no limit.
            if text.isdecimal():
                yield int(text)
            if each == root:
                break
