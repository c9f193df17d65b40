"""Session tokens: they contain the session, sealed by a key of the store. Pure.

A token is valid on every server with the same key, and after restarts. The secret of a session is
derived from the token and the key, so the token does not contain the secret. The content of a token
is readable, as its holder knows the content already.
"""

from __future__ import annotations

import hmac
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import Final

from msgspec import MsgspecError, Struct, json

from dynactor.model.errors import ExpiredTokenException, UnrecognizedClientException

TOKEN_HEADER: Final = "x-amz-security-token"  # noqa: S105 - a name
# Headers together have at most 16 KB.
TOKEN_BYTES: Final = 8_192
_CACHED_TOKENS: Final = 1_024


class Session(Struct, frozen=True, omit_defaults=True):
    """Temporary credentials of a user, or of a role that a caller assumed.

    ``user`` is the name of a profile, also for a role that this user has assumed. ``policy`` is the
    text of the session's own policy.
    """

    access_key_id: str
    expires_epoch_seconds: int
    user: str = ""
    role: str = ""
    name: str = ""
    tags: dict[str, str] = {}
    policy: str | None = None


class SessionTooLarge(Exception):
    """The policy and the tags of a session don't fit into a token."""


class SessionTokens:
    """Makes and verifies tokens with one key, which is in the store.

    Without a key, because the store is not open on this node, no token is valid.
    """

    def __init__(self, key: bytes = b"") -> None:
        self.use(key)

    def use(self, key: bytes) -> None:
        """Use this key from now on."""
        self._key = key
        self._opened = lru_cache(maxsize=_CACHED_TOKENS)(self._open)

    @property
    def has_key(self) -> bool:
        """Whether tokens can be verified."""
        return bool(self._key)

    def issue(self, session: Session) -> tuple[str, str]:
        """The token and the secret access key of a session; raises ``TooLarge`` if too large."""
        assert self._key, "the home of the tables has the key"
        content = json.encode(session)
        token = f"{_text(content)}.{_text(self._mac(b'token', content))}"
        if len(token) > TOKEN_BYTES:
            raise SessionTooLarge
        return token, self._secret(content)

    def session(self, token: str, access_key_id: str, now_epoch_seconds: float) -> Session:
        """The session of a token.

        Raises ``ExpiredTokenException``, or ``UnrecognizedClientException`` if it is of other keys.
        """
        opened = self._opened(token) if self._key and len(token) <= TOKEN_BYTES else None
        if opened is None or opened[0].access_key_id != access_key_id:
            raise UnrecognizedClientException(
                "The security token included in the request is invalid."
            )
        if opened[0].expires_epoch_seconds <= now_epoch_seconds:
            raise ExpiredTokenException("The security token included in the request is expired")
        return opened[0]

    def secret(self, token: str, access_key_id: str, now_epoch_seconds: float) -> str:
        """The secret access key of a session. Raises the errors of ``session``."""
        self.session(token, access_key_id, now_epoch_seconds)
        opened = self._opened(token)
        assert opened is not None, "see session"
        return opened[1]

    def _open(self, token: str) -> tuple[Session, str] | None:
        """The session and its secret; None if the token was not issued with this key."""
        given, _, mac = token.partition(".")
        try:
            content = urlsafe_b64decode(given)
            if not hmac.compare_digest(mac, _text(self._mac(b"token", content))):
                return None
            return json.decode(content, type=Session), self._secret(content)
        except (ValueError, TypeError, MsgspecError):
            return None

    def _secret(self, content: bytes) -> str:
        return b64encode(self._mac(b"secret", content)).decode()[:40]

    def _mac(self, purpose: bytes, content: bytes) -> bytes:
        return hmac.digest(self._key, purpose + b"\0" + content, "sha256")


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode()
