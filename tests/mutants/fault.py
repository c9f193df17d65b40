"""A fault to plant in the product, and the tests that must fail with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """A change to one file of the product.

    ``file`` and ``test_file`` are paths relative to the project. ``old`` occurs exactly once in
    ``file``; planting the fault replaces it with ``new``. Each of ``tests``, functions of
    ``test_file`` as pytest names them, fails with the fault.
    """

    name: str
    file: str
    old: str
    new: str
    test_file: str
    tests: Sequence[str]

    @property
    def test_ids(self) -> list[str]:
        """The tests as arguments of pytest."""
        return [f"{self.test_file}::{test}" for test in self.tests]

    def problem(self) -> str | None:
        """Why the fault can't be planted in the working tree, None if it can."""
        path, test_path = PROJECT / self.file, PROJECT / self.test_file
        if not path.is_file():
            return f"{self.file} is missing"
        count = path.read_text().count(self.old)
        if count != 1:
            return f"the old text occurs {count} times in {self.file}, not once"
        if not test_path.is_file():
            return f"{self.test_file} is missing"
        for test in self.tests:
            function = test.partition("[")[0]
            if f"def {function}(" not in test_path.read_text():
                return f"{self.test_file} has no test {function}"
        return None

    @contextmanager
    def planted(self, directory: Path) -> Iterator[None]:
        """Plant the fault in a copy of the project, and remove it when the context ends."""
        path = directory / self.file
        healthy = path.read_text()
        assert healthy.count(self.old) == 1, self.problem()
        path.write_text(healthy.replace(self.old, self.new))
        try:
            yield
        finally:
            path.write_text(healthy)
