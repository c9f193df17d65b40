"""The certificate of the server's ports, from the options."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dynactor.api.options.options import ServeOptions
from dynactor.api.tls.certificate import BadCertificate, ServerCertificate
from dynactor.api.tls.node_certificate import NodeCertificate


class OpenCertificate(NamedTuple):
    """The certificate of the ports. Clients must trust ``authority``, if the server made it.

    ``admin`` differs if the admin port verifies the certificates of its clients. ``node`` is for
    connections between nodes.
    """

    server: ServerCertificate
    admin: ServerCertificate
    node: NodeCertificate | None
    authority: Path | None = None


def open_certificate(options: ServeOptions) -> OpenCertificate | None:
    """Load or make the certificate; None: the ports speak plain HTTP.

    A certificate for development is in the data directory, so the data must be open.

    Raises:
        BadCertificate: the certificate can't be used, or the library to make one is missing.
    """
    if options.tls_cert is not None and options.tls_key is not None:
        paths = options.tls_cert.expanduser(), options.tls_key.expanduser()
        return _open(options, *paths)
    if not options.tls_self_signed:
        return None
    try:
        # Only a development certificate needs the library.
        from dynactor.api.tls.self_signed import self_signed_certificate  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadCertificate(
            f"--tls-self-signed needs {error.name}: install it by pip install 'dynactor[tls]'"
        ) from error
    made = self_signed_certificate(options.tls_directory, options.host_names)
    return _open(options, made.certificate, made.key, made.authority)


def _open(
    options: ServeOptions, certificate: Path, key: Path, authority: Path | None = None
) -> OpenCertificate:
    server = ServerCertificate(certificate, key)
    admin, node = server, None
    client_ca = options.admin_callers.admin_client_ca
    if client_ca is not None:
        admin = ServerCertificate(certificate, key, client_ca.expanduser(), logs_expiry=False)
    if options.nodes.address is not None:
        peer_ca = options.nodes.peer_ca
        trusted = authority if peer_ca is None else peer_ca.expanduser()
        node = NodeCertificate(certificate, key, trusted, is_mutual=peer_ca is not None)
    return OpenCertificate(server, admin, node, authority)
