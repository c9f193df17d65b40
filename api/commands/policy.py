"""The command ``dynactor policy``: tests policies without a server, and suggests policies."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NoReturn

from cyclopts import App, Parameter
from msgspec import MsgspecError, Struct, json

from dynactor.api.access.policy_files import BadPolicyFile, read_policy
from dynactor.api.admin_api.access_messages import ACTIONS_PATH, RecordedAnswer
from dynactor.api.clients.admin_client import AdminRequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.clients.server_address import ServerAddress
from dynactor.model.access.decision import Grants
from dynactor.model.access.explanation import explained, warnings
from dynactor.model.access.principal import user
from dynactor.model.access.suggestion import suggested
from dynactor.model.account import ACCOUNT_ID

_ROLE: Final = "role/"
_UNEXPECTED: Final = 1
_FAILED: Final = 2

policy = App(
    name="policy",
    help="Test IAM policies, and suggest the policy that a service needs.",
    help_format="markdown",
)


class PolicyRequest(Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """An action to decide, and the decision that is expected, if any."""

    action: str
    resource: str
    context: dict[str, str | list[str]] = {}
    expect: Literal["allow", "deny"] | None = None


class GivenFacts:
    """Condition keys of a request in the file, and those of the caller."""

    def __init__(self, grants: Grants, context: Mapping[str, str | list[str]]) -> None:
        self._principal = grants.principal
        self._given = {key.lower(): value for key, value in context.items()}

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a key in lower case; None if neither has the key."""
        given = self._given.get(key)
        if given is None:
            return self._principal.values(key)
        return (given,) if isinstance(given, str) else given


@policy.command(name="test")
def decide(
    policy_file: Path,
    requests: Path,
    /,
    *,
    user_name: Annotated[str, Parameter(name="--user")] = "user",
    tags: tuple[str, ...] = (),
) -> None:
    """Decide requests by a policy, and say why each statement applies or not.

    The exit code is 0 if all decisions are as expected, 1 if some are not, and 2 after an error.

    Parameters
    ----------
    policy_file
        File with the policy.
    requests
        File with a request in each line, such as {"Action": "dynamodb:GetItem", "Resource":
        "arn:aws:dynamodb:us-east-1:000000000000:table/Music", "Context":
        {"dynamodb:LeadingKeys": ["a"]}, "Expect": "allow"}.
    user_name
        Name of the user.
    tags
        Tags of the user, such as team=blue.
    """
    try:
        parsed = read_policy(policy_file)
    except BadPolicyFile as error:
        _give_up(str(error))
    pairs = [tag.partition("=") for tag in tags]
    principal = user(user_name, ACCOUNT_ID, {key: value for key, _, value in pairs})
    grants = Grants(principal, [parsed])
    for warning in warnings(grants):
        sys.stdout.write(f"warning: {warning}\n")
    are_expected = [_decide(grants, request) for request in _requests(requests)]
    if not all(are_expected):
        sys.exit(_UNEXPECTED)


def _requests(path: Path) -> list[PolicyRequest]:
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        _give_up(f"{path} can't be read: {error}")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(json.decode(line, type=PolicyRequest))
        except MsgspecError as error:
            _give_up(f"{path}:{number}: {error}")
    return found


def _decide(grants: Grants, request: PolicyRequest) -> bool:
    """Print the decision; return whether it is the expected one."""
    facts = GivenFacts(grants, request.context)
    found = explained(grants, request.action, request.resource, facts)
    is_expected = request.expect in (None, found.decision)
    note = "" if is_expected else f" (expected {request.expect})"
    sys.stdout.write(f"{found.decision}{note}: {request.action} on {request.resource}\n")
    if found.message:
        sys.stdout.write(f"  {found.message}\n")
    for one in found.statements:
        reason = f"does not apply: {one.reason}" if one.reason else "applies"
        sys.stdout.write(f"  {one.effect.lower()} {one.statement} {reason}\n")
    return is_expected


@policy.command
def suggest(name: str, /, *, server: ServerAddress | None = None) -> None:
    """Print the least policy that allows the requests of a user or role in the last hour.

    The server must run with --policy-mode observe, which records these requests. Requests that the
    server answered with errors are included.

    Parameters
    ----------
    name
        Name of the user, which is the name of its profile; role/NAME for a role.
    """
    kind = "" if name.startswith(_ROLE) else "user/"
    parameters = {"principal": f"arn:aws:iam::{ACCOUNT_ID}:{kind}{name}"}
    try:
        answer = (
            (server or ServerAddress())
            .admin_client()
            .ask("GET", ACTIONS_PATH, RecordedAnswer, parameters=parameters)
        )
    except (CannotCall, AdminRequestFailed) as error:
        _give_up(str(error))
    if not answer.actions:
        _give_up(f"The server has recorded no requests of {name} in the last hour")
    suggestion = suggested(answer.actions)
    for note in suggestion.notes:
        sys.stderr.write(f"note: {note}\n")
    sys.stdout.buffer.write(json.format(json.encode(suggestion.policy)) + b"\n")


def _give_up(message: str) -> NoReturn:
    sys.stderr.write(f"dynactor: {message}\n")
    sys.exit(_FAILED)
