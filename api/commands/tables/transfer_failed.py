"""The error that ends a transfer."""

from __future__ import annotations


class TransferFailed(Exception):
    """The transfer can't continue; the message says why and what to do."""
