"""A certificate for development, signed by a certificate authority (CA) of its own.

Clients trust the CA's certificate. The CA is kept across restarts, so clients are configured once.
The server's certificate is made again if it lacks a name or expires soon.

This module imports the library cryptography, which is an extra.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dynactor.api.tls.certificate import BadCertificate

# Browsers accept at most 398 days.
VALID_DAYS: Final = 397
_AUTHORITY_DAYS: Final = 3_650
RENEWED_DAYS: Final = 30
# The clocks of clients may be late.
_BACKDATED: Final = timedelta(hours=1)
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class SelfSigned(NamedTuple):
    """The files of a development certificate. Clients trust ``authority``."""

    certificate: Path
    key: Path
    authority: Path


def self_signed_certificate(
    directory: Path, names: Iterable[str], now: datetime | None = None
) -> SelfSigned:
    """The certificate in a directory for these names, or a new one; raises ``BadCertificate``."""
    wanted = sorted({*_LOCAL_NAMES, socket.gethostname(), *names})
    try:
        with _locked(directory):
            return _Maker(directory, now or datetime.now(UTC)).ensure(wanted)
    except OSError as error:
        raise BadCertificate(f"No certificate can be made in {directory}: {error}") from None
    except ValueError as error:
        raise BadCertificate(
            f"A file in {directory} is damaged: remove the directory ({error})"
        ) from None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Create the directory and lock it, because two servers may share it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class _Maker:
    """Makes the files in one directory."""

    def __init__(self, directory: Path, now: datetime) -> None:
        self._authority = directory / "ca.pem"
        self._authority_key = directory / "ca-key.pem"
        self._certificate = directory / "server.pem"
        self._key = directory / "server-key.pem"
        self._now = now

    def ensure(self, names: list[str]) -> SelfSigned:
        """Make the files that are missing or unusable."""
        if not (self._authority.exists() and self._authority_key.exists()):
            self._make_authority()
            self._certificate.unlink(missing_ok=True)
        if not self._is_usable(names):
            self._make_certificate(names)
        return SelfSigned(self._certificate, self._key, self._authority)

    def _is_usable(self, names: list[str]) -> bool:
        """Whether the certificate has these names, and does not expire soon."""
        if not (self._certificate.exists() and self._key.exists()):
            return False
        found = x509.load_pem_x509_certificate(self._certificate.read_bytes())
        if found.not_valid_after_utc < self._now + timedelta(days=RENEWED_DAYS):
            return False
        given = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return {str(name.value) for name in given} >= set(names)

    def _builder(
        self, subject: x509.Name, days: int, key: EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BACKDATED)
            .not_valid_after(self._now - _BACKDATED + timedelta(days=days))
        )

    def _make_authority(self) -> None:
        key = generate_private_key(SECP256R1())
        name = _name(f"dynactor development CA of {socket.gethostname()}")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        made = (
            self._builder(name, _AUTHORITY_DAYS, key)
            .issuer_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write(self._authority_key, _key_text(key))
        _write(self._authority, made.public_bytes(Encoding.PEM))

    def _make_certificate(self, names: list[str]) -> None:
        authority = x509.load_pem_x509_certificate(self._authority.read_bytes())
        signer = load_pem_private_key(self._authority_key.read_bytes(), None)
        public_key = authority.public_key()
        if not isinstance(signer, EllipticCurvePrivateKey) or signer.public_key() != public_key:
            raise ValueError("ca-key.pem is not the key of ca.pem")
        key = generate_private_key(SECP256R1())
        made = (
            self._builder(_name("dynactor"), VALID_DAYS, key)
            .issuer_name(authority.subject)
            .add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
            .sign(signer, hashes.SHA256())
        )
        _write(self._key, _key_text(key))
        _write(self._certificate, made.public_bytes(Encoding.PEM))


def _name(common_name: str) -> x509.Name:
    # X.520's limit of a common name is 64 characters.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_text(key: EllipticCurvePrivateKey) -> bytes:
    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text


def _write(path: Path, content: bytes) -> None:
    """Replace a file in one step; only its owner can read it."""
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    unfinished.replace(path)
