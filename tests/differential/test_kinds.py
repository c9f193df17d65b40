"""docs/DIFFERENCES.md describes exactly the kinds of difference."""

from __future__ import annotations

import re
from pathlib import Path

from tests.differential.differences.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "DIFFERENCES.md"


def test_the_page_of_differences_lists_the_kinds_that_are_known() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = sorted(row for row in rows if row not in ("Kind", "---"))
    assert told == sorted(kind.name for kind in KINDS)
