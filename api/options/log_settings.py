"""The levels and formats of log lines."""

from __future__ import annotations

from typing import Literal, TypeAlias

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]
