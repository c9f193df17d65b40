"""Each worker of a run collects all tests, so collecting is cheap."""

from __future__ import annotations

import sys

import pytest

# Any module of the product, imported by a test as all others are.
from dynactor.model import limits


def test_the_assertions_of_the_product_are_not_rewritten() -> None:
    assert limits.__spec__ is not None
    assert type(limits.__spec__.loader).__module__ == "_frozen_importlib_external"


def test_compiled_tests_are_kept_for_the_next_run(pytestconfig: pytest.Config) -> None:
    if pytestconfig.pluginmanager.hasplugin("cacheprovider"):
        assert not sys.dont_write_bytecode
