"""Files with secrets: for changes over the admin port, and for connections between nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

LEAST_SECRET_CHARACTERS: Final = 16


class BadSecretFile(Exception):
    """The file has no usable secret; the message describes the fix."""


def read_secret(path: Path, option: str) -> str:
    """The stripped secret in an option's file; raises ``BadSecretFile``, also if too short."""
    try:
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSecretFile(f"{option} {path} can't be read: {error}") from error
    if len(secret) < LEAST_SECRET_CHARACTERS or not secret.isascii():
        raise BadSecretFile(
            f"{option} {path} needs a secret of at least {LEAST_SECRET_CHARACTERS} "
            "ASCII characters: make one with `openssl rand -hex 32`"
        )
    return secret
