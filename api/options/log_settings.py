"""The settings of log lines."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.option import Option, OptionGroup

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]


class LogSettings(Struct, frozen=True):
    """The level and the format of log lines."""

    format: Annotated[LogFormat, Option("--log-format", OptionGroup.PROCESS)] = "text"
    """Format of log lines: text, or json for one JSON object per line."""

    level: Annotated[LogLevel, Option("--log-level", OptionGroup.PROCESS)] = "info"
    """Lowest level to log. debug logs every request."""
