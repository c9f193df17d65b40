"""The command ``dynactor encrypt-keys``: encrypts a credentials file."""

from __future__ import annotations

import sys
from pathlib import Path

from dynactor.api.admin_api.secret_file import BadSecretFile, read_secret
from dynactor.api.keys.access_keys import BadCredentialsFile, read_profiles
from dynactor.api.keys.key_file import BadKeyFile, encrypted, read_text


def encrypt_keys(file: Path, /, *, credentials_key_file: Path) -> None:
    """Encrypt a credentials file, and print the result.

    Parameters
    ----------
    file
        A file for --credentials-file, with mode 600.
    credentials_key_file
        File with the secret that the server will get with the same option. Make one with
        `openssl rand -hex 32`.
    """
    try:
        # Find mistakes now instead of at the start of the server.
        read_profiles(file)
        secret = read_secret(credentials_key_file, "--credentials-key-file")
        sys.stdout.write(encrypted(read_text(file), secret).decode())
    except (BadCredentialsFile, BadKeyFile, BadSecretFile) as error:
        sys.exit(f"dynactor: {error}")
