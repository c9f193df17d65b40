"""Certificates for tests, and the settings of clients that trust them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

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


class Authority:
    """A certificate authority of tests. Its certificates are for clients and for servers."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = generate_private_key(SECP256R1())
        self._name = _subject("authority of tests")
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        made = self._builder(self._name).public_key(self._key.public_key())
        signed = made.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.file = directory / "ca.pem"
        self.file.write_bytes(signed.public_bytes(Encoding.PEM))

    def issue(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """The files of a new certificate with this common name, and of its key."""
        key = generate_private_key(SECP256R1())
        builder = self._builder(_subject(name)).public_key(key.public_key())
        if addresses:
            given = [x509.IPAddress(ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(given), critical=False)
        pair = self._directory / f"{name}.pem", self._directory / f"{name}-key.pem"
        pair[0].write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        pair[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return pair

    def _builder(self, subject: x509.Name) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
