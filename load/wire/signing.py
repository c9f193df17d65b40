"""AWS signatures, version 4, over the four headers that boto3 signs.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SERVICE: Final = "dynamodb"


class NoCredentials(Exception):
    """There are no credentials; the message lists the places that were searched."""


class Credentials(NamedTuple):
    """A key pair, and a token if it is a temporary one."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        """Hide the secret, because the object may be printed."""
        return "Credentials(…)"


def find_credentials(environment: Mapping[str, str] = os.environ) -> Credentials:
    """Credentials from the environment, else from botocore, if it is installed.

    Raises:
        NoCredentials: there are none.
    """
    access_key = environment.get("AWS_ACCESS_KEY_ID")
    secret_key = environment.get("AWS_SECRET_ACCESS_KEY")
    if access_key and secret_key:
        return Credentials(access_key, secret_key, environment.get("AWS_SESSION_TOKEN"))
    if find_spec("botocore") is not None:
        found = import_module("botocore.session").get_session().get_credentials()
        if found is not None:
            frozen = found.get_frozen_credentials()
            return Credentials(frozen.access_key, frozen.secret_key, frozen.token)
    raise NoCredentials(
        "Nothing to sign with: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile "
        "that boto3 finds"
    )


class Signer:
    """Signs requests to one host; the key of a day is derived once."""

    def __init__(self, credentials: Credentials, region: str, host_header: str) -> None:
        self._credentials = credentials
        self._region = region
        self._host = host_header
        self._day = ""
        self._key = b""

    def headers(self, target: str, body: bytes, now: datetime | None = None) -> str:
        """The lines to add to a POST of this body for ``X-Amz-Target``."""
        moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        day = moment[:8]
        token = self._credentials.token
        signed = {"host": self._host, "x-amz-date": moment}
        if token:
            signed["x-amz-security-token"] = token
        signed["x-amz-target"] = target
        names = ";".join(signed)
        lines = "".join(f"{name}:{text}\n" for name, text in signed.items())
        canonical = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{day}/{self._region}/{_SERVICE}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}"
        signature = hmac.digest(self._key_of(day), to_sign.encode(), "sha256").hex()
        return (
            f"X-Amz-Date: {moment}\r\n"
            + (f"X-Amz-Security-Token: {token}\r\n" if token else "")
            + f"Authorization: {_ALGORITHM} Credential={self._credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}\r\n"
        )

    def _key_of(self, day: str) -> bytes:
        if day != self._day:
            key = f"AWS4{self._credentials.secret_key}".encode()
            for part in (day, self._region, _SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day, self._key = day, key
        return self._key
