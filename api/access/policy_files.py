"""Reads policies from a directory: NAME.json is the policy NAME."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dynactor.actors.catalog.database_settings import DatabaseSettings
from dynactor.api.http.access_keys import Profile
from dynactor.model.access.decision import Grants
from dynactor.model.access.document import PolicyError
from dynactor.model.access.policy import Policy, parse_policy
from dynactor.model.access.principal import user

# IAM User Guide, "IAM and AWS STS quotas": names of users.
_USER_NAME: Final = re.compile(r"[A-Za-z0-9+=,.@_-]{1,64}\Z")


class BadPolicyFile(Exception):
    """A policy can't be used; the message names the file and the line."""


def policy_paths(directory: Path) -> list[Path]:
    """The files of policies in a directory."""
    return sorted(directory.glob("*.json"))


def read_grants(profiles: Sequence[Profile], directory: Path) -> dict[str, Grants]:
    """The policies of each access key, by its id.

    All files are read, so that a mistake is found before a profile names the policy.

    Raises:
        BadPolicyFile: a file is not a policy, or a profile names a policy that does not exist.
    """
    policies = read_policies(directory)
    account = DatabaseSettings().account_id
    grants = {}
    for profile in profiles:
        if _USER_NAME.match(profile.name) is None:
            raise BadPolicyFile(
                f"the profile [{profile.name}] is no name of a user: give at most 64 letters, "
                "digits and +=,.@_-"
            )
        for name in profile.policies:
            if name not in policies:
                raise BadPolicyFile(
                    f"the profile [{profile.name}] names the policy {name}, but {directory} has "
                    f"no file {name}.json"
                )
        grants[profile.key.access_key_id] = Grants(
            user(profile.name, account, profile.tags),
            [policies[name] for name in profile.policies],
        )
    return grants


def read_policies(directory: Path) -> dict[str, Policy]:
    """The policies of a directory by their names.

    Raises:
        BadPolicyFile: a file is not a policy.
    """
    if not directory.is_dir():
        raise BadPolicyFile(f"{directory} is not a directory")
    return {path.stem: read_policy(path) for path in policy_paths(directory)}


def read_policy(path: Path) -> Policy:
    """The policy of a user in a file.

    Raises:
        BadPolicyFile: the file is not a policy.
    """
    try:
        return parse_policy(path.read_text(encoding="utf-8"), path.stem)
    except PolicyError as error:
        raise BadPolicyFile(f"{path}:{error.line}: {error.message}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadPolicyFile(f"{path} can't be read: {error}") from None
