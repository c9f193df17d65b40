"""The access keys of clients, from a file in the format of ~/.aws/credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from configparser import Error, RawConfigParser
from pathlib import Path
from typing import Final

from msgspec import Struct

from dynactor.api.http.signature import AccessKey

_ID: Final = "aws_access_key_id"
_SECRET: Final = "aws_secret_access_key"  # noqa: S105 - the name of one
_POLICIES: Final = "policies"
_TAGS: Final = "tags"
# Characters that a key id can't have: they end the id in an Authorization header, or are not
# allowed in the header.
_INVALID_IN_ID: Final = re.compile(r"[^!-~]|[,/]")


class BadCredentialsFile(Exception):
    """The file has no usable keys; the message says why."""


class Profile(Struct, frozen=True):
    """A profile with a key. ``policies`` are names of policies, ``tags`` those of the user."""

    name: str
    key: AccessKey
    policies: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}


def access_keys(profiles: Sequence[Profile]) -> tuple[AccessKey, ...]:
    """The keys of these profiles, each once."""
    return tuple(dict.fromkeys(profile.key for profile in profiles))


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """The profiles of a file that have a key.

    Raises:
        BadCredentialsFile: the file can't be read, has no key, or has half of a key.
    """
    profiles = RawConfigParser()
    try:
        profiles.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadCredentialsFile(f"{path} can't be read: {error}") from None
    except Error as error:
        # The error's message may show a secret, so only its line number is used.
        line = getattr(error, "lineno", None)
        where = "" if line is None else f" (line {line})"
        raise BadCredentialsFile(
            f"{path} is no credentials file{where}: give profiles, each a line [NAME] and lines "
            f"{_ID} = … and {_SECRET} = …"
        ) from None
    found: dict[str, Profile] = {}
    for name in profiles.sections():
        profile = profiles[name]
        given = profile.get(_ID, ""), profile.get(_SECRET, "")
        if given == ("", ""):
            # A profile may have other settings and no key.
            continue
        if not all(given):
            raise BadCredentialsFile(f"{path}: the profile [{name}] needs both {_ID} and {_SECRET}")
        _check_signs(path, name, given)
        read = Profile(
            name,
            AccessKey(*given),
            tuple(_split(profile.get(_POLICIES, ""))),
            _tags(path, name, profile.get(_TAGS, "")),
        )
        earlier = found.setdefault(read.key.access_key_id, read)
        if earlier.key != read.key:
            raise BadCredentialsFile(f"{path}: {read.key.access_key_id} has two secrets")
        if (earlier.policies, earlier.tags) != (read.policies, read.tags):
            raise BadCredentialsFile(
                f"{path}: {read.key.access_key_id} has different {_POLICIES} or {_TAGS} in "
                f"[{earlier.name}] and [{name}]"
            )
    if not found:
        raise BadCredentialsFile(f"{path} has no profile with {_ID} and {_SECRET}")
    return tuple(found.values())


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _tags(path: Path, profile: str, text: str) -> dict[str, str]:
    tags = {}
    for part in _split(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise BadCredentialsFile(
                f"{path}: the {_TAGS} of the profile [{profile}] must be KEY=VALUE, separated by "
                "commas"
            )
        tags[key.strip()] = value.strip()
    return tags


def _check_signs(path: Path, profile: str, key: tuple[str, str]) -> None:
    """Refuse a key that no client could sign with, because all its requests would be refused."""
    if _INVALID_IN_ID.search(key[0]) is not None:
        raise BadCredentialsFile(
            f"{path}: the {_ID} of the profile [{profile}] can't be written into a signature: give "
            "letters and digits, without spaces, commas and slashes"
        )
    if "\n" in key[1]:
        raise BadCredentialsFile(
            f"{path}: the {_SECRET} of the profile [{profile}] has more than one line: begin every "
            "line without spaces"
        )


def own_access_key(environment: Mapping[str, str] = os.environ) -> AccessKey | None:
    """The key that commands sign with, from the variables that AWS's tools read first, if set."""
    access_key_id, secret = environment.get(_ID.upper()), environment.get(_SECRET.upper())
    return AccessKey(access_key_id, secret) if access_key_id and secret else None
