"""The expiry of a certificate, read from its DER encoding.

Python's library ssl shows the contents of a certificate only to the other side of a connection.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

_END: Final = "-----END CERTIFICATE-----"
_UTC_TIME: Final = 0x17
_EXPLICIT_VERSION: Final = 0xA0
_LONG_FORM: Final = 0x80
# RFC 5280, 4.1.2.5.1: a UTCTime's years from 50 on are of the 20th century.
_CENTURY_SPLIT: Final = 50


def certificate_expiry(pem: str) -> float:
    """The end of the validity of the first certificate, in epoch seconds; raises ``ValueError``."""
    start = pem.find("-----BEGIN CERTIFICATE-----")
    end = pem.find(_END, start)
    if start < 0 or end < 0:
        raise ValueError("the file has no certificate in PEM form")
    der = ssl.PEM_cert_to_DER_cert(pem[start : end + len(_END)])
    try:
        return _expiry(der)
    except IndexError:
        raise ValueError("the certificate is incomplete") from None


def _expiry(der: bytes) -> float:
    # Certificate, then its first element TBSCertificate.
    _, position, _ = _element(der, 0)
    _, position, _ = _element(der, position)
    tag, _, after = _element(der, position)
    if tag == _EXPLICIT_VERSION:
        position = after
    for _ in ("serial number", "signature algorithm", "issuer"):
        _, _, position = _element(der, position)
    _, position, _ = _element(der, position)
    _, _, not_after = _element(der, position)
    tag, start, end = _element(der, not_after)
    text = der[start:end].decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if int(text[:2]) >= _CENTURY_SPLIT else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _element(der: bytes, position: int) -> tuple[int, int, int]:
    """The tag of the element at a position, and the start and end of its content."""
    tag, length, start = der[position], der[position + 1], position + 2
    if length & _LONG_FORM:
        size = length ^ _LONG_FORM
        length = int.from_bytes(der[start : start + size], "big")
        start += size
    return tag, start, start + length
