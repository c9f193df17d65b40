"""Certificates for tests, and the settings of clients that trust them."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from dynactor.api.tls.certificate import ServerCertificate
from dynactor.api.tls.self_signed import SelfSigned, self_signed_certificate


class Certified(NamedTuple):
    """A server's certificate, its files, and the settings of a client."""

    server: ServerCertificate
    files: SelfSigned
    client: ssl.SSLContext


@cache
def certificate_for_tests() -> Certified:
    """A certificate of this process, which tests don't change."""
    files = self_signed_certificate(Path(mkdtemp(prefix="dynactor-tls-")), ())
    return Certified(
        ServerCertificate(files.certificate, files.key), files, trusting(files.authority)
    )


def trusting(authority: Path) -> ssl.SSLContext:
    """The settings of a client that trusts a certificate authority."""
    return ssl.create_default_context(cafile=authority)
