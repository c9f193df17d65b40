"""The server's certificate and private key, loaded from files and reloaded when they change.

Only TLS 1.2 and 1.3, with ephemeral keys and authenticated encryption; no renegotiation.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from dynactor.api.tls.expiry import certificate_expiry

# The suites of TLS 1.2; those of TLS 1.3 are all strong.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
_SOON_DAYS: Final = 30
_SECONDS_PER_DAY: Final = 86_400

_log = structlog.get_logger(__name__)


class BadCertificate(Exception):
    """A certificate and its key can't be used; the message gives the reason."""


class ServerCertificate:
    """A certificate with its key. ``context`` is for new connections; existing ones keep theirs."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        client_authorities: Path | None = None,
        *,
        requires_clients: bool = False,
        logs_expiry: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Load the files. Certificates of clients are verified against ``client_authorities``.

        A client may also have no certificate, unless ``requires_clients``. ``logs_expiry`` is false
        for a further use of the same files. Raises ``BadCertificate`` if a file can't be read, or
        certificate and key don't belong together.
        """
        self._certificate, self._key = certificate, key
        self._client_authorities = client_authorities
        self._requires_clients = requires_clients
        self.paths = tuple(path for path in (certificate, key, client_authorities) if path)
        self._logs_expiry, self._now = logs_expiry, now
        self.context, self.expires_at_epoch_seconds = self._load()
        self._log_expiry()

    def reload(self) -> None:
        """Load the files again; if they can't be used, keep the present certificate."""
        try:
            self.context, self.expires_at_epoch_seconds = self._load()
        except BadCertificate as error:
            # Two files can't be replaced in one step, so this state may last for a moment.
            _log.warning("certificate_unchanged", reason=str(error))
        else:
            expiry = datetime.fromtimestamp(self.expires_at_epoch_seconds, UTC)
            _log.info("certificate_loaded", expires=expiry.isoformat())
        self._log_expiry()

    def _log_expiry(self) -> None:
        """Warn if the certificate has expired, or expires soon: clients refuse it then."""
        left_seconds = self.expires_at_epoch_seconds - self._now()
        if not self._logs_expiry or left_seconds > _SOON_DAYS * _SECONDS_PER_DAY:
            return
        expiry = datetime.fromtimestamp(self.expires_at_epoch_seconds, UTC).isoformat()
        path = str(self._certificate)
        if left_seconds <= 0:
            _log.error("certificate_expired", path=path, expired=expiry)
        else:
            days = int(left_seconds / _SECONDS_PER_DAY)
            _log.warning("certificate_renewal_needed", path=path, expires=expiry, days=days)

    def _load(self) -> tuple[ssl.SSLContext, float]:
        certificate, key = self._certificate, self._key
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        try:
            # An empty password makes an encrypted key an error, instead of a prompt.
            context.load_cert_chain(certificate, key, password="")
            expiry = certificate_expiry(certificate.read_text())
        except (OSError, ValueError) as error:
            # The errors of the library ssl are OSErrors.
            reason = error_reason(error)
            hint = "; the key is not the certificate's" if "MISMATCH" in reason else ""
            raise BadCertificate(
                f"The certificate {certificate} can't be used with the key {key}: {reason}{hint}"
            ) from None
        if self._client_authorities is not None:
            self._trust_clients(context, self._client_authorities)
        return context, expiry

    def _trust_clients(self, context: ssl.SSLContext, authorities: Path) -> None:
        """Verify the certificates of clients; raises ``BadCertificate``."""
        context.verify_mode = ssl.CERT_REQUIRED if self._requires_clients else ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(authorities)
        except OSError as error:
            raise BadCertificate(
                f"The certificate authorities {authorities} can't be used: {error_reason(error)}"
            ) from None


def error_reason(error: Exception) -> str:
    """The text of an error of the library ssl, or of a file."""
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
