"""The server's certificate and private key, loaded from files and reloaded when they change.

Only TLS 1.2 and 1.3 are offered, with ephemeral keys and authenticated encryption. A client can't
renegotiate.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from dynactor.api.tls.expiry import certificate_expiry

# The suites of TLS 1.2; those of TLS 1.3 are all strong.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"

_log = structlog.get_logger(__name__)


class BadCertificate(Exception):
    """A certificate and its key can't be used; the message gives the reason."""


class ServerCertificate:
    """A certificate with its key. ``context`` is for new connections; existing ones keep theirs."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load both files.

        Raises:
            BadCertificate: a file can't be read, or the files don't belong together.
        """
        self.paths = (certificate, key)
        self.context, self.expires_at_epoch_seconds = self._load()

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

    def _load(self) -> tuple[ssl.SSLContext, float]:
        certificate, key = self.paths
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        try:
            # An empty password makes an encrypted key an error, instead of a prompt.
            context.load_cert_chain(certificate, key, password="")
            return context, certificate_expiry(certificate.read_text())
        except (OSError, ValueError) as error:
            # The errors of the library ssl are OSErrors.
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            hint = "; the key is not the certificate's" if "MISMATCH" in str(reason) else ""
            raise BadCertificate(
                f"The certificate {certificate} can't be used with the key {key}: {reason}{hint}"
            ) from None
