"""The error of options that can't be used."""

from __future__ import annotations


class ConfigurationError(Exception):
    """Options that do not go together; the message says what to do."""
