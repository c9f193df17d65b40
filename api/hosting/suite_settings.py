"""The settings for test suites, which control the server over its admin port."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from dynactor.model.option import Option, OptionGroup


class SuiteSettings(Struct, frozen=True):
    """The changes that test suites may make over the admin port."""

    allow_reset: Annotated[bool, Option("--allow-reset", OptionGroup.ACCESS)] = False
    """Allow reset and snapshots over the admin port for data on disk. With --in-memory they are
    always allowed."""

    allow_faults: Annotated[bool, Option("--allow-faults", OptionGroup.ACCESS)] = False
    """Allow tests to inject faults over the admin port."""
