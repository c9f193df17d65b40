"""Importing a library without one of the libraries that it would use if it were installed."""

from __future__ import annotations

import sys
from importlib import import_module


def import_without(name: str, unwanted: str) -> None:
    """Import a module as if another one were not installed, unless that one is loaded already."""
    if unwanted in sys.modules:
        return
    # Python's import system raises ModuleNotFoundError for a name that stands for None there.
    sys.modules[unwanted] = None  # type: ignore[assignment]
    try:
        import_module(name)
    finally:
        del sys.modules[unwanted]
