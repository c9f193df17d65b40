"""Progress of transfers on standard error: one changing line on a terminal, else regular lines."""

from __future__ import annotations

import sys
import time
from typing import Final

_TERMINAL_SECONDS: Final = 0.2
_FILE_SECONDS: Final = 10.0
_CLEAR_LINE: Final = "\r\x1b[K"


class TerminalProgress:
    """Writes lines that stay, and a state that is overwritten."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._is_line_open = False
        # The first state of a short transfer is not shown in a file.
        self._shown_at = time.monotonic() if not self._is_terminal else 0.0

    def say(self, text: str) -> None:
        """Write a line that stays."""
        sys.stderr.write(f"{self._clearing()}{text}\n")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Show a state, unless the last one is recent."""
        now = time.monotonic()
        if now - self._shown_at < (_TERMINAL_SECONDS if self._is_terminal else _FILE_SECONDS):
            return
        self._shown_at = now
        if not self._is_terminal:
            self.say(text)
            return
        sys.stderr.write(self._clearing() + text)
        sys.stderr.flush()
        self._is_line_open = True

    def _clearing(self) -> str:
        was_open, self._is_line_open = self._is_line_open, False
        return _CLEAR_LINE if was_open else ""
