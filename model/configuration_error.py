"""The error for invalid options."""

from __future__ import annotations


class ConfigurationError(Exception):
    """Options are invalid or contradict each other; the message describes the fix."""
