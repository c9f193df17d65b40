"""Functions and files are short enough to be kept in mind; the exceptions have reasons."""

from __future__ import annotations

import pytest

from tests.architecture import overview
from tests.architecture.overview import REASONS, long_files, long_functions

MOST_EXCEPTIONS = 3


def long_places() -> set[str]:
    """The functions and files that are too long."""
    return {place for _, place in (*long_functions(), *long_files())}


def test_a_long_function_or_file_has_a_reason():
    assert long_places() == REASONS.keys(), "divide it along its ideas, or remove its old reason"
    assert len(REASONS) <= MOST_EXCEPTIONS


def test_a_longer_function_or_file_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(overview, "MOST_FUNCTION_LINES", 40)
    monkeypatch.setattr(overview, "MOST_FILE_LINES", 400)
    assert long_places() > REASONS.keys()
    assert any(place.count(":") == 1 for place in long_places() - REASONS.keys())
