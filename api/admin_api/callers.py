"""The callers of the admin port: the proofs that they give, and what each proof allows.

A proof is a secret, a client certificate, a session of the console, or an address of the same
machine. The best proof of a request counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    # The options of the server use this module, and are checked before the server is imported.
    from aiohttp import web

# The proof of a caller that has given none.
UNKNOWN: Final = "unknown"
_SCHEME: Final = "Bearer "


class Level(IntEnum):
    """The requests that a caller may send."""

    NOTHING = 0
    READ = 1
    FULL = 2


class Caller(NamedTuple):
    """The best proof of a caller, in words for the log, and the requests that it allows."""

    proof: str
    level: Level


class CallerRules(NamedTuple):
    """The proofs that the server accepts.

    Every caller may read, unless the server has a secret for reading or verifies certificates.
    Then each request needs one of these proofs, also from the same machine.
    """

    secret: str | None = None
    read_secret: str | None = None
    # The server verifies the certificates of clients.
    has_certificates: bool = False
    # The common names of certificates with full access; None: all certificates.
    full_names: frozenset[str] | None = None

    def __repr__(self) -> str:
        """Omit the secrets: this text may be logged."""
        return f"CallerRules(has_secrets={self.has_secrets})"

    @property
    def restricts_reading(self) -> bool:
        """Whether a read needs a proof."""
        return self.read_secret is not None or self.has_certificates

    @property
    def has_secrets(self) -> bool:
        """Whether a caller can sign in with a secret."""
        return self.secret is not None or self.read_secret is not None

    def caller(
        self,
        headers: Mapping[str, str],
        peer: str | None,
        certificate_name: str | None = None,
        page_level: Level = Level.NOTHING,
    ) -> Caller:
        """The caller that sent a request.

        ``peer`` is the caller's IP address, ``certificate_name`` the common name of its verified
        certificate, ``page_level`` the level of its page of the console.
        """
        return max(
            self._proofs(headers, peer, certificate_name, page_level), key=lambda each: each.level
        )

    def _proofs(
        self,
        headers: Mapping[str, str],
        peer: str | None,
        certificate_name: str | None,
        page_level: Level,
    ) -> Iterator[Caller]:
        authorization = headers.get("Authorization", "")
        if authorization.startswith(_SCHEME):
            level = self.secret_level(authorization.removeprefix(_SCHEME).strip())
            if level is not Level.NOTHING:
                yield Caller("secret" if level is Level.FULL else "read-only secret", level)
        if certificate_name is not None:
            level = self.certificate_level(certificate_name)
            yield Caller(f"certificate {certificate_name}", level)
        if page_level is not Level.NOTHING:
            yield Caller("console", page_level)
        if self.restricts_reading:
            yield Caller(UNKNOWN, Level.NOTHING)
        else:
            yield (
                Caller("same machine", Level.FULL)
                if is_local(peer)
                else Caller(UNKNOWN, Level.READ)
            )

    def secret_level(self, given: str) -> Level:
        """The requests that a secret allows."""
        # The text of a header may have surrogates, for bytes that are not UTF-8.
        encoded = given.encode(errors="surrogateescape")
        if self.secret is not None and compare_digest(encoded, self.secret.encode()):
            return Level.FULL
        if self.read_secret is not None and compare_digest(encoded, self.read_secret.encode()):
            return Level.READ
        return Level.NOTHING

    def certificate_level(self, name: str) -> Level:
        """The requests that a verified certificate with this common name allows."""
        return Level.FULL if self.full_names is None or name in self.full_names else Level.READ


def certificate_name(request: web.BaseRequest) -> str | None:
    """The common name of a caller's verified certificate; None without a certificate.

    The name is empty if the certificate does not have exactly one.
    """
    transport = request.transport
    certificate = None if transport is None else transport.get_extra_info("peercert")
    if not certificate:
        return None
    names = [text for part in certificate["subject"] for kind, text in part if kind == "commonName"]
    return names[0] if len(names) == 1 else ""


def is_local(peer: str | None) -> bool:
    """Whether a caller with this IP address is on the same machine."""
    if peer is None:
        return False
    address = ip_address(peer.partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
