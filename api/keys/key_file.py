"""The text of a credentials file: readable by its owner only, or encrypted.

An encrypted file is a line that names the format, and a line of base64: a salt, a nonce, and the
text sealed by AES-256-GCM. The key is derived from a secret by scrypt.
"""

from __future__ import annotations

import os
import stat
from base64 import b64decode, b64encode
from hashlib import scrypt
from pathlib import Path
from typing import Final

_FORMAT: Final = b"dynactor-credentials-1\n"
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
# The key takes about 50 ms and 16 MiB to derive.
_SCRYPT_COST: Final = 2**14
_SCRYPT_BLOCK: Final = 8
_KEY_BYTES: Final = 32
_OTHERS: Final = 0o077
# A group may read a file of root, because systemd and Kubernetes pass secrets in such files.
_OTHERS_THAN_GROUP: Final = 0o037


class BadKeyFile(Exception):
    """The file can't be used; the message describes the fix."""


def read_text(path: Path, secret: str | None = None) -> str:
    """The text of a credentials file; ``secret`` decrypts it, if needed. Raises ``BadKeyFile``."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
        if content.startswith(_FORMAT):
            return _decrypted(path, content, secret)
        if secret is not None:
            raise BadKeyFile(
                f"{path} is not encrypted: encrypt it with `dynactor encrypt-keys {path}`, or "
                "leave out --credentials-key-file"
            )
        check_mode(path, status, os.geteuid())
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadKeyFile(f"{path} can't be read: {error}") from None


def encrypted(text: str, secret: str) -> bytes:
    """The content of an encrypted file; raises ``BadKeyFile`` if the library for it is missing."""
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    sealed: bytes = _cipher(secret, salt).encrypt(nonce, text.encode(), _FORMAT)
    return _FORMAT + b64encode(salt + nonce + sealed) + b"\n"


def _decrypted(path: Path, content: bytes, secret: str | None) -> str:
    if secret is None:
        raise BadKeyFile(f"{path} is encrypted: give --credentials-key-file")
    try:
        sealed = b64decode(content[len(_FORMAT) :])
    except ValueError:
        raise BadKeyFile(f"{path} is damaged") from None
    salt, sealed = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
    cipher = _cipher(secret, salt)
    # Imported after the cipher, which says how to install the library.
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    try:
        text: bytes = cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _FORMAT)
    except (InvalidTag, ValueError):
        raise BadKeyFile(
            f"{path} can't be decrypted: it is damaged, or encrypted with another "
            "--credentials-key-file"
        ) from None
    return text.decode()


def _cipher(secret: str, salt: bytes):  # type: ignore[no-untyped-def]  # noqa: ANN202
    try:
        # Only encrypted files need the library.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadKeyFile(
            f"An encrypted credentials file needs {error.name}: install it by pip install "
            "'dynactor[tls]'"
        ) from None
    key = scrypt(secret.encode(), salt=salt, n=_SCRYPT_COST, r=_SCRYPT_BLOCK, p=1, dklen=_KEY_BYTES)
    return AESGCM(key)


def check_private(path: Path) -> None:
    """Refuse a file that other users own or may read; raises ``BadKeyFile``."""
    try:
        check_mode(path, path.stat(), os.geteuid())
    except OSError as error:
        raise BadKeyFile(f"{path} can't be read: {error}") from None


def check_mode(path: Path, status: os.stat_result, user: int) -> None:
    """Refuse the file of a server that runs as a user; see ``check_private``."""
    if not stat.S_ISREG(status.st_mode):
        # A pipe.
        return
    if status.st_uid not in (user, 0):
        raise BadKeyFile(f"{path} belongs to another user: run chown {user} {path}")
    others = _OTHERS if status.st_uid == user != 0 else _OTHERS_THAN_GROUP
    if status.st_mode & others:
        raise BadKeyFile(
            f"Other users of the machine may read the secrets in {path}: run chmod 600 {path}"
        )
