"""docs/DIFFERENCES.md describes exactly the known kinds of differences."""

from __future__ import annotations

import re
from pathlib import Path

from tests.differential.differences.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "DIFFERENCES.md"


def test_the_page_of_differences_lists_all_known_kinds() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = sorted(row for row in rows if row not in ("Kind", "---"))
    assert listed == sorted(kind.name for kind in KINDS)
