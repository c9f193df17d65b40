"""The users and roles of the server, with their policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from dynactor.api.keys.session_tokens import TOKEN_HEADER, Session, SessionTokens
from dynactor.model.access.decision import Grants
from dynactor.model.access.policy import Policy, parse_policy
from dynactor.model.access.principal import role_session
from dynactor.model.errors import UnrecognizedClientException

_DEFAULT_SECONDS: Final = 3_600
_ANY_SESSION: Final = "session"
_CACHED_SESSIONS: Final = 1_024


class Role(Struct, frozen=True):
    """A role: who may assume it, and what it may do."""

    name: str
    trust: Policy
    policies: tuple[Policy, ...]
    tags: Mapping[str, str] = {}
    max_session_seconds: int = _DEFAULT_SECONDS


class Identities(Struct, frozen=True):
    """Users by the ids of their access keys, and roles by their names."""

    users: Mapping[str, Grants]
    roles: Mapping[str, Role] = {}

    def user(self, name: str) -> Grants | None:
        """The user with this name."""
        for grants in self.users.values():
            if grants.principal.user_name == name:
                return grants
        return None


class IdentityRegistry:
    """Finds the policies of callers, whose keys belong to users or are temporary."""

    def __init__(self, identities: Identities, tokens: SessionTokens, account: str) -> None:
        self.identities = identities
        self._tokens = tokens
        self._account = account
        # The policies of sessions by their tokens.
        self._sessions: dict[str, Grants] = {}

    def replace(self, identities: Identities) -> None:
        """Use these users and roles from now on."""
        self.identities = identities
        self._sessions.clear()

    def all_grants(self) -> Iterator[Grants]:
        """The policies of all users, and those of a session of each role."""
        yield from self.identities.users.values()
        for role in self.identities.roles.values():
            principal = role_session(role.name, _ANY_SESSION, self._account, role.tags)
            yield Grants(principal, role.policies)

    def grants(
        self, access_key_id: str, headers: Mapping[str, str], now_epoch_seconds: float
    ) -> Grants:
        """The policies of a caller, whose signature has been verified.

        Raises ``UnrecognizedClientException`` if key, user or role is gone, or
        ``ExpiredTokenException``.
        """
        grants = self.identities.users.get(access_key_id)
        if grants is not None:
            return grants
        token = headers.get(TOKEN_HEADER, "")
        session = self._tokens.session(token, access_key_id, now_epoch_seconds)
        grants = self._sessions.get(token)
        if grants is None:
            grants = self._session_grants(session)
            if len(self._sessions) >= _CACHED_SESSIONS:
                self._sessions.clear()
            self._sessions[token] = grants
        return grants

    def _session_grants(self, session: Session) -> Grants:
        own = [] if session.policy is None else [parse_policy(session.policy, "session", "session")]
        if session.role:
            role = self.identities.roles.get(session.role)
            if role is not None:
                tags = _merged(role.tags, session.tags)
                principal = role_session(role.name, session.name, self._account, tags)
                return Grants(
                    principal, role.policies, own or None, is_session=True, user_name=session.user
                )
        elif (user := self.identities.user(session.user)) is not None:
            return Grants(user.principal, user.policies, is_session=True)
        raise UnrecognizedClientException("The security token included in the request is invalid.")


def _merged(role_tags: Mapping[str, str], session_tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a session, which replace those of its role. Keys are not case-sensitive."""
    given = {key.lower() for key in session_tags}
    kept = {key: value for key, value in role_tags.items() if key.lower() not in given}
    return {**kept, **session_tags}
