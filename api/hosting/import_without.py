"""Import of a library without one of its optional dependencies."""

from __future__ import annotations

import sys
from importlib import import_module


def import_without(name: str, unwanted: str) -> None:
    """Import a module as if ``unwanted`` were not installed; no effect if it is loaded already."""
    if unwanted in sys.modules:
        return
    # Python's import system raises ModuleNotFoundError for a name whose entry is None.
    sys.modules[unwanted] = None  # type: ignore[assignment]
    try:
        import_module(name)
    finally:
        del sys.modules[unwanted]
