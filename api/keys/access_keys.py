"""The access keys of clients, from a file in the format of ~/.aws/credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from configparser import Error, RawConfigParser, SectionProxy
from math import inf
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, structs

from dynactor.api.keys.key_file import BadKeyFile, read_text
from dynactor.api.keys.signature import AccessKey

_ID: Final = "aws_access_key_id"
_SECRET: Final = "aws_secret_access_key"  # noqa: S105 - the name of one
_POLICIES: Final = "policies"
_TAGS: Final = "tags"
_REQUESTS: Final = "requests_per_second"
_BYTES: Final = "bytes_per_second"
_CONNECTIONS: Final = "connections"
# Characters that a key id can't have: they end the id in an Authorization header, or are not
# allowed in the header.
_INVALID_IN_ID: Final = re.compile(r"[^!-~]|[,/]")


NumberT = TypeVar("NumberT", int, float)


class BadCredentialsFile(Exception):
    """The file has no usable keys; the message says why."""


class Limits(Struct, frozen=True):
    """The limits of a key; None for none."""

    requests_per_second: float | None = None
    bytes_per_second: float | None = None
    connections: int | None = None


class Profile(Struct, frozen=True):
    """A profile with a key. ``policies`` are names of policies, ``tags`` those of the user."""

    name: str
    key: AccessKey
    policies: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}
    limits: Limits = Limits()


def access_keys(profiles: Sequence[Profile]) -> tuple[AccessKey, ...]:
    """The keys of these profiles, each once."""
    return tuple(dict.fromkeys(profile.key for profile in profiles))


def read_profiles(path: Path, secret: str | None = None) -> tuple[Profile, ...]:
    """The profiles of a file that have a key; ``secret`` decrypts an encrypted file.

    Raises ``BadCredentialsFile`` if it can't be used, or others may read its secrets.
    """
    profiles = RawConfigParser()
    try:
        profiles.read_string(read_text(path, secret))
    except BadKeyFile as error:
        raise BadCredentialsFile(str(error)) from None
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
            _limits(path, profile),
        )
        earlier = found.setdefault(read.key.access_key_id, read)
        if earlier.key != read.key:
            raise BadCredentialsFile(f"{path}: {read.key.access_key_id} has two secrets")
        if structs.replace(read, name=earlier.name) != earlier:
            raise BadCredentialsFile(
                f"{path}: {read.key.access_key_id} has different {_POLICIES}, {_TAGS} or limits in "
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


def _limits(path: Path, profile: SectionProxy) -> Limits:
    return Limits(
        _limit(path, profile, _REQUESTS, float),
        _limit(path, profile, _BYTES, float),
        _limit(path, profile, _CONNECTIONS, int),
    )


def _limit(
    path: Path, profile: SectionProxy, setting: str, parse: Callable[[str], NumberT]
) -> NumberT | None:
    text = profile.get(setting)
    if text is None:
        return None
    try:
        limit = parse(text)
    except ValueError:
        limit = parse("0")
    if not 0 < limit < inf:
        raise BadCredentialsFile(
            f"{path}: {setting} of the profile [{profile.name}] must be a number above 0"
        )
    return limit


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
