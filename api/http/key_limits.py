"""Limits of requests, bytes and connections for access keys.

The temporary credentials of a user count as the user's key. Requests that are refused by a limit
have been verified, so nobody else can use up the limit of a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dynactor.api.access.sender import Connection
from dynactor.api.keys.access_keys import Limits, Profile
from dynactor.api.keys.session_tokens import TOKEN_HEADER, SessionTokens
from dynactor.model.errors import ThrottlingException
from dynactor.model.throttling.token_bucket import TokenBucket

# The unused requests and bytes of one second are kept.
_BURST_SECONDS: Final = 1.0


class KeyUse:
    """The use of one profile's key, and its limits.

    A request is admitted while the balances are positive. Its bytes, and later those of its answer,
    may make the balance negative, and the next requests wait for that.
    """

    def __init__(self, name: str, limits: Limits, now: Callable[[], float]) -> None:
        self.limits = limits
        self._name = name
        self._now = now
        self._requests = self._bucket(limits.requests_per_second)
        self._bytes = self._bucket(limits.bytes_per_second)
        self.connections: set[Connection] = set()

    def _bucket(self, rate: float | None) -> TokenBucket | None:
        if rate is None:
            return None
        return TokenBucket(
            rate, self._now(), saved_seconds=_BURST_SECONDS, most_seconds=_BURST_SECONDS
        )

    def begin(self, size_bytes: int, connection: Connection | None) -> None:
        """Count a request, and its connection if the connection is open.

        Raises ``ThrottlingException`` if the key has reached a limit.
        """
        now = self._now()
        limits = self.limits
        if self._requests is not None and self._requests.fill(now) <= 0:
            raise self._refusal(f"{limits.requests_per_second:,g} requests per second")
        if self._bytes is not None and self._bytes.fill(now) <= 0:
            raise self._refusal(f"{limits.bytes_per_second:,g} bytes per second")
        if limits.connections is not None and connection is not None:
            is_new = connection not in self.connections
            if is_new and len(self.connections) >= limits.connections:
                raise self._refusal(f"{limits.connections:,} connections")
            self.connections.add(connection)
        if self._requests is not None:
            self._requests.take(1, now)
        if self._bytes is not None:
            self._bytes.take(size_bytes, now)

    def answered(self, size_bytes: int) -> None:
        """Count an answer."""
        if self._bytes is not None:
            self._bytes.take(size_bytes, self._now())

    def _refusal(self, limit: str) -> ThrottlingException:
        return ThrottlingException(f"Rate exceeded: the profile {self._name} may use {limit}")


class KeyLimits:
    """The limits of all profiles that have limits."""

    def __init__(self, tokens: SessionTokens, now: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._now = now
        # The keys of all profiles; None without limits.
        self._by_key: dict[str, KeyUse | None] = {}
        self._by_user: dict[str, KeyUse] = {}

    @property
    def has_limits(self) -> bool:
        """Whether a profile has limits."""
        return bool(self._by_user)

    def replace(self, profiles: Sequence[Profile]) -> None:
        """Use the limits of these profiles. The use of a profile with the same limits stays."""
        before = self._by_user
        self._by_key, self._by_user = {}, {}
        for profile in profiles:
            self._by_key[profile.key.access_key_id] = None
            if profile.limits == Limits():
                continue
            use = before.get(profile.name)
            if use is None or use.limits != profile.limits:
                use = KeyUse(profile.name, profile.limits, self._now)
                if profile.name in before:
                    use.connections = before[profile.name].connections
            self._by_key[profile.key.access_key_id] = self._by_user[profile.name] = use

    def begin(
        self,
        access_key_id: str,
        headers: Mapping[str, str],
        size_bytes: int,
        connection: Connection | None = None,
    ) -> KeyUse | None:
        """Count a request whose signature has been verified; None without limits.

        ``connection`` is None for a request from another node, or without an open connection.
        Raises ``ThrottlingException`` at a limit.
        """
        if access_key_id in self._by_key:
            # A token is ignored, as the check of the signature ignores it.
            use = self._by_key[access_key_id]
        else:
            token = headers.get(TOKEN_HEADER)
            if token is None:
                return None
            session = self._tokens.session(token, access_key_id, time.time())
            use = self._by_user.get(session.user)
        if use is not None:
            use.begin(size_bytes, connection)
        return use

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        for use in self._by_user.values():
            use.connections.discard(connection)
