"""The settings of access keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dynactor.api.keys.access_keys import Profile, access_keys
from dynactor.api.keys.signature import AccessKey
from dynactor.model.option import Option, OptionGroup
from dynactor.model.secret_fields import SecretFields


class KeySettings(SecretFields, frozen=True):
    """The access keys that clients must sign with."""

    secret_fields = frozenset({"secret"})

    file: Annotated[Path | None, Option("--credentials-file", OptionGroup.KEYS)] = None
    """File with the access keys that clients must sign with, in the format of ~/.aws/credentials,
    readable by its owner only or encrypted. Without the option every access key is accepted."""

    secret_file: Annotated[Path | None, Option("--credentials-key-file", OptionGroup.KEYS)] = None
    """File with the secret that decrypts a --credentials-file of dynactor encrypt-keys."""

    # The contents of the files, read once: a pipe can't be read twice.
    secret: str | None = None
    profiles: tuple[Profile, ...] | None = None

    @property
    def access_keys(self) -> tuple[AccessKey, ...] | None:
        """The keys that clients must sign with; None accepts any key."""
        return None if self.profiles is None else access_keys(self.profiles)
