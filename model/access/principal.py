"""The callers of requests, as policies see them."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

_ID_CHARACTERS: Final = 17


class Principal(Struct, frozen=True):
    """A user, or a role in a session.

    ``arn`` is in error messages. ``principal_arn`` is the user's or role's own ARN.
    """

    arn: str
    account: str
    user_id: str
    principal_arn: str
    user_name: str | None = None
    tags: Mapping[str, str] = {}

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a condition key, in lower case, that depends only on the caller."""
        match key:
            case "aws:principalarn":
                return (self.principal_arn,)
            case "aws:userid":
                return (self.user_id,)
            case "aws:username":
                return None if self.user_name is None else (self.user_name,)
        prefix, _, tag = key.partition("/")
        if prefix != "aws:principaltag":
            return None
        return tag_values(self.tags, tag)


def is_of_caller(key: str) -> bool:
    """Whether a condition key, in lower case, depends only on the caller."""
    return key in ("aws:principalarn", "aws:userid", "aws:username") or key.startswith(
        "aws:principaltag/"
    )


def tag_values(tags: Mapping[str, str], tag: str) -> Sequence[str] | None:
    """The values of a tag, whose key is in lower case; None without the tag."""
    found = tuple(value for key, value in tags.items() if key.lower() == tag)
    return found or None


def user(name: str, account: str, tags: Mapping[str, str]) -> Principal:
    """The user of a profile."""
    arn = f"arn:aws:iam::{account}:user/{name}"
    return Principal(arn, account, unique_id("AIDA", arn), arn, name, tags)


def role_session(role: str, session: str, account: str, tags: Mapping[str, str]) -> Principal:
    """A role that was assumed; ``session`` is the name that the caller gave the session."""
    arn = f"arn:aws:iam::{account}:role/{role}"
    return Principal(
        f"arn:aws:sts::{account}:assumed-role/{role}/{session}",
        account,
        f"{unique_id('AROA', arn)}:{session}",
        arn,
        None,
        tags,
    )


def unique_id(prefix: str, arn: str) -> str:
    """An id in AWS's form for a user or role, always the same for one ARN."""
    return prefix + b32encode(sha256(arn.encode()).digest()).decode()[:_ID_CHARACTERS]
