"""A control group that limits a process's memory, including its part of the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

_ROOT = Path("/sys/fs/cgroup")
_ATTEMPTS = 100


class NoMemoryGroup(Exception):
    """No group can be created; the message says why."""


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A new group, of version 1 or 2, which must be empty at the end.

    Raises:
        NoMemoryGroup: no group can be created.
    """
    is_first_version = (_ROOT / "memory").is_dir()
    parent = _ROOT / "memory" if is_first_version else _ROOT
    limit_file = "memory.limit_in_bytes" if is_first_version else "memory.max"
    group = parent / f"dynactor-scale-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoMemoryGroup(f"No memory limit can be set, which root may: {error}") from error
    try:
        (group / limit_file).write_text(str(limit_bytes))
        yield group
    except FileNotFoundError as error:
        raise NoMemoryGroup(f"Control groups have no memory limit here: {error}") from error
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Remove the group, once the kernel has removed the last process, shortly after its end."""
    for attempt in range(_ATTEMPTS):
        try:
            group.rmdir()
        except OSError:
            if attempt == _ATTEMPTS - 1:
                raise
            sleep(0.05)
        else:
            return
