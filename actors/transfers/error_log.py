"""The log of records that could not be processed: one line of JSON for each."""

from __future__ import annotations

from typing import Final

from msgspec import json

from dynactor.model.files.records import Fault

_MOST_ERRORS: Final = 10_000
_MOST_BYTES: Final = 1_024


class ErrorLog:
    """The first errors of an import or bulk operation, with the beginning of each record."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, key: str, fault: Fault) -> None:
        """Log the fault of a record of an object, unless the log is full."""
        if len(self._lines) < _MOST_ERRORS:
            self._lines.append(
                json.encode(
                    {
                        "key": key,
                        "line": fault.line,
                        "code": fault.code,
                        "message": fault.message,
                        "item": fault.text[:_MOST_BYTES].decode(errors="replace"),
                    }
                )
            )

    def add_failure(self, code: str, message: str) -> None:
        """Log the error that ended everything, also if the log is full."""
        self._lines = self._lines[: _MOST_ERRORS - 1]
        self.add("", Fault(0, b"", code, message))

    @property
    def data(self) -> bytes:
        """The lines; empty if there is no error."""
        return b"".join([line + b"\n" for line in self._lines])
