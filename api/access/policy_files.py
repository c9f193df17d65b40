"""Reads policies and roles from a directory: NAME.json is a policy, roles/NAME.json a role."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, MsgspecError, Struct, convert

from dynactor.api.access.identities import Identities, Role
from dynactor.api.keys.access_keys import Profile
from dynactor.model.access.decision import Grants
from dynactor.model.access.document import JsonNode, PolicyError, parse_json
from dynactor.model.access.policy import Policy, parse_policy, parsed_policy
from dynactor.model.access.principal import user
from dynactor.model.account import ACCOUNT_ID

# IAM User Guide, "IAM and AWS STS quotas": names of users.
_USER_NAME: Final = re.compile(r"[A-Za-z0-9+=,.@_-]{1,64}\Z")


class BadPolicyFile(Exception):
    """A policy can't be used; the message names the file and the line."""


def policy_paths(directory: Path) -> list[Path]:
    """The files of policies in a directory."""
    return sorted(directory.glob("*.json"))


def role_paths(directory: Path) -> list[Path]:
    """The files of roles in a directory of policies."""
    return sorted(directory.glob("roles/*.json"))


def read_identities(profiles: Sequence[Profile], directory: Path) -> Identities:
    """The users and the roles, with their policies; raises ``BadPolicyFile``.

    All files are read, so that a mistake is found before a policy is used.
    """
    policies = read_policies(directory)
    users = {}
    for profile in profiles:
        if _USER_NAME.match(profile.name) is None:
            raise BadPolicyFile(
                f"the profile [{profile.name}] is no name of a user: give at most 64 letters, "
                "digits and +=,.@_-"
            )
        users[profile.key.access_key_id] = Grants(
            user(profile.name, ACCOUNT_ID, profile.tags),
            _named(policies, profile.policies, f"the profile [{profile.name}]", directory),
        )
    roles = [_read_role(path, policies, directory) for path in role_paths(directory)]
    return Identities(users, {role.name: role for role in roles})


def open_identities(profiles: Sequence[Profile]) -> Identities:
    """The users of a server without policies: each may do everything."""
    return Identities(
        {
            profile.key.access_key_id: Grants(
                user(profile.name, ACCOUNT_ID, profile.tags), [EVERYTHING]
            )
            for profile in profiles
        }
    )


EVERYTHING: Final = parse_policy(
    '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}', "everything"
)


def _named(
    policies: Mapping[str, Policy], names: Sequence[str], owner: str, directory: Path
) -> tuple[Policy, ...]:
    for name in names:
        if name not in policies:
            raise BadPolicyFile(
                f"{owner} names the policy {name}, but {directory} has no file {name}.json"
            )
    return tuple(policies[name] for name in names)


def _read_role(path: Path, policies: Mapping[str, Policy], directory: Path) -> Role:
    """A role in a file, such as ``{"TrustPolicy": {…}, "Policies": ["readers"]}``."""
    try:
        trust, rest = _parsed_role(_text(path), path.stem)
    except PolicyError as error:
        raise BadPolicyFile(f"{path}:{error.line}: {error.message}") from None
    except MsgspecError as error:
        raise BadPolicyFile(f"{path}: {error}") from None
    if _USER_NAME.match(path.stem) is None:
        raise BadPolicyFile(f"{path}: {path.stem} is no name of a role")
    named = _named(policies, rest.Policies, str(path), directory)
    return Role(path.stem, trust, named, rest.Tags, rest.MaxSessionDuration)


def _parsed_role(text: str, name: str) -> tuple[Policy, _RoleFile]:
    """The trust policy of a role, and its other members."""
    document = parse_json(text)
    members = document.value if isinstance(document.value, dict) else {}
    if "TrustPolicy" not in members:
        raise PolicyError("a role needs a TrustPolicy", document.line)
    for member, node in members.items():
        if member not in _ROLE_MEMBERS:
            raise PolicyError(f"{member} is not a member of a role", node.line)
    trust = parsed_policy(members["TrustPolicy"], name, "trust")
    rest = {member: _plain(node) for member, node in members.items() if member != "TrustPolicy"}
    return trust, convert(rest, _RoleFile, strict=False)


class _RoleFile(Struct, frozen=True):
    """The members of a role's file besides its trust policy."""

    Policies: tuple[str, ...] = ()
    Tags: dict[str, str] = {}
    MaxSessionDuration: Annotated[int, Meta(ge=3_600, le=43_200)] = 3_600


_ROLE_MEMBERS: Final = frozenset({"TrustPolicy", *_RoleFile.__struct_fields__})


def _plain(node: JsonNode) -> object:
    """A JSON value without lines."""
    value = node.value
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def read_policies(directory: Path) -> dict[str, Policy]:
    """The policies of a directory by their names; raises ``BadPolicyFile``."""
    if not directory.is_dir():
        raise BadPolicyFile(f"{directory} is not a directory")
    return {path.stem: read_policy(path) for path in policy_paths(directory)}


def read_policy(path: Path) -> Policy:
    """The policy of a user in a file; raises ``BadPolicyFile``."""
    try:
        return parse_policy(_text(path), path.stem)
    except PolicyError as error:
        raise BadPolicyFile(f"{path}:{error.line}: {error.message}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPolicyFile(f"{path} can't be read: {error}") from None
