"""The certificate of the server's ports, from the settings."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.tls.certificate import BadCertificate, ServerCertificate
from dynactor.api.tls.node_certificate import NodeCertificate


class OpenCertificate(NamedTuple):
    """The certificate of the ports. Clients must trust ``authority``, if the server made it.

    ``admin`` differs if the admin port verifies the certificates of its clients. ``node`` is for
    connections between nodes.
    """

    server: ServerCertificate | None = None
    admin: ServerCertificate | None = None
    node: NodeCertificate | None = None
    authority: Path | None = None


def open_certificate(settings: ServerSettings) -> OpenCertificate:
    """Load or make the certificate; without one, the ports speak plain HTTP.

    A certificate for development is in the data directory, so the data must be open. Raises
    ``BadCertificate``, also if the library to make one is missing.
    """
    tls = settings.tls
    if tls.certificate is not None and tls.key is not None:
        return _open(settings, tls.certificate.expanduser(), tls.key.expanduser())
    if not tls.self_signed:
        return OpenCertificate()
    try:
        # Only a development certificate needs the library.
        from dynactor.api.tls.self_signed import self_signed_certificate  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadCertificate(
            f"--tls-self-signed needs {error.name}: install it by pip install 'dynactor[tls]'"
        ) from error
    made = self_signed_certificate(settings.store.tls_directory, settings.host_names)
    return _open(settings, made.certificate, made.key, made.authority)


def _open(
    settings: ServerSettings, certificate: Path, key: Path, authority: Path | None = None
) -> OpenCertificate:
    server = ServerCertificate(certificate, key)
    admin, node = server, None
    client_ca = settings.admin.client_ca
    if client_ca is not None:
        admin = ServerCertificate(certificate, key, client_ca.expanduser(), logs_expiry=False)
    if settings.is_node:
        peer_ca = settings.nodes.ca
        trusted = authority if peer_ca is None else peer_ca.expanduser()
        node = NodeCertificate(certificate, key, trusted, is_mutual=peer_ca is not None)
    return OpenCertificate(server, admin, node, authority)
