"""The certificate with which a node listens for other nodes and connects to them."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from dynactor.api.tls.certificate import BadCertificate, ServerCertificate, error_reason

_log = structlog.get_logger(__name__)


class NodeCertificate:
    """``server`` is for accepted connections, ``client`` for connections to other nodes.

    A node verifies the certificate and the address of the node that it connects to.
    """

    def __init__(
        self, certificate: Path, key: Path, authorities: Path | None, *, is_mutual: bool
    ) -> None:
        """Load the files. ``authorities`` sign the certificates of nodes; None: the system's.

        ``is_mutual``: nodes that connect to this one need a certificate, too. Raises
        ``BadCertificate``.
        """
        self.server = ServerCertificate(
            certificate,
            key,
            authorities if is_mutual else None,
            requires_clients=is_mutual,
            logs_expiry=False,
        )
        self._certificate, self._key = certificate, key
        self._authorities = authorities
        self._is_mutual = is_mutual
        self.client = self._client()

    @property
    def paths(self) -> list[Path]:
        """The files, to watch them for changes."""
        return [path for path in (self._certificate, self._key, self._authorities) if path]

    def reload(self) -> None:
        """Load the files again; if they can't be used, keep the present certificate."""
        self.server.reload()
        try:
            self.client = self._client()
        except BadCertificate as error:
            _log.warning("certificate_unchanged", reason=str(error))

    def _client(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self._authorities)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self._is_mutual:
                context.load_cert_chain(self._certificate, self._key, password="")
        except OSError as error:
            raise BadCertificate(
                f"The certificate can't be used for other nodes: {error_reason(error)}"
            ) from None
        return context
