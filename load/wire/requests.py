"""Whole HTTP requests as bytes: a precomputed head, the length, the body."""

from __future__ import annotations

from typing import Final

from dynactor.load.wire.endpoint import Endpoint
from dynactor.load.wire.signing import Signer

_TARGET_PREFIX: Final = "DynamoDB_20120810."
# Servers that check no signature still require one.
_UNSIGNED: Final = (
    "X-Amz-Date: 20260101T000000Z\r\n"
    "Authorization: AWS4-HMAC-SHA256 Credential=load/20260101/{region}/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0\r\n"
)


class Requests:
    """Makes the requests to one endpoint, signed if there is a signer."""

    def __init__(self, endpoint: Endpoint, region: str, signer: Signer | None = None) -> None:
        self._host = endpoint.host_header
        self._signer = signer
        self._authorization = _UNSIGNED.format(region=region)
        self._heads: dict[str, bytes] = {}

    def make(self, operation: str, body: bytes) -> bytes:
        """A request for an operation."""
        if self._signer is not None:
            headers = self._signer.headers(_TARGET_PREFIX + operation, body)
            return self._head(operation, headers) + b"%d\r\n\r\n" % len(body) + body
        head = self._heads.get(operation)
        if head is None:
            head = self._heads[operation] = self._head(operation, self._authorization)
        return b"%b%d\r\n\r\n%b" % (head, len(body), body)

    def _head(self, operation: str, authorization: str) -> bytes:
        return (
            f"POST / HTTP/1.1\r\nHost: {self._host}\r\n"
            "Content-Type: application/x-amz-json-1.0\r\n"
            f"X-Amz-Target: {_TARGET_PREFIX}{operation}\r\n{authorization}"
            "Content-Length: "
        ).encode()
