"""Signatures of AWS, version 4: made by those who know a secret key, and looked into here. Pure.

A signature covers the body, its time and the headers that it names, so that nobody on the way can
change or later repeat what was asked.

Sources: IAM User Guide, "Create a signed AWS API request"; the order of the checks and their
messages as dynalite's authors have recorded them from AWS.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote

from model.errors import (
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)

ALGORITHM: Final = "AWS4-HMAC-SHA256"
DATE_HEADER: Final = "x-amz-date"
_SERVICE: Final = "dynamodb"
_TERMINATOR: Final = "aws4_request"
_PARAMETERS: Final = ("Credential", "Signature", "SignedHeaders")
_CREDENTIAL_ELEMENTS: Final = 5
# Without them one request could be made another one: of another operation, or of another day.
_ALWAYS_SIGNED: Final = {"host": "Host", DATE_HEADER: "X-Amz-Date", "x-amz-target": "X-Amz-Target"}
_MOMENT: Final = "%Y%m%dT%H%M%SZ"
_IS_MOMENT: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z", re.ASCII)
# By how much the clocks of a client and of the server may differ.
_SKEW_MINUTES: Final = 15
_SKEW_SECONDS: Final = 60 * _SKEW_MINUTES
_SPACES: Final = re.compile(" +")


class AccessKey(NamedTuple):
    """A key pair."""

    access_key_id: str
    secret_access_key: str

    def __repr__(self) -> str:
        """Without the secret: this may come to be logged."""
        return f"AccessKey({self.access_key_id!r}, …)"


class _Authorization(NamedTuple):
    """What an Authorization header says."""

    algorithm: str
    credential: str
    signed_headers: str
    signature: str


class Signatures:
    """Knows the keys by which requests may be signed."""

    def __init__(self, access_keys: tuple[AccessKey, ...]) -> None:
        self._secrets = {key.access_key_id: key.secret_access_key for key in access_keys}

    def check(
        self, headers: Mapping[str, str], query: str, body: bytes, now_epoch_seconds: float
    ) -> None:
        """Refuse a POST that none of the keys has signed; names of ``headers`` are in lower case.

        Raises:
            MissingAuthenticationTokenException: nobody has signed it.
            IncompleteSignatureException: something is missing from its signature.
            UnrecognizedClientException: its key is not known.
            InvalidSignatureException: it is of another time, or not what was signed.
        """
        authorization = headers.get("authorization", "")
        if "X-Amz-Algorithm=" in query:
            if authorization:
                raise InvalidSignatureException(
                    "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as "
                    "HTTP header."
                )
            raise IncompleteSignatureException(
                "Signatures in the query string are not supported by dynactor: sign by the "
                "Authorization header"
            )
        if not authorization.startswith("AWS4-"):
            raise MissingAuthenticationTokenException("Request is missing Authentication Token")
        given = _parsed(authorization, headers)
        moment = headers[DATE_HEADER]
        _check_moment(moment, now_epoch_seconds)
        signed_headers = given.signed_headers.lower().split(";")
        for name, told in _ALWAYS_SIGNED.items():
            if name not in signed_headers:
                raise InvalidSignatureException(
                    f"'{told}' must be a 'SignedHeader' in the AWS Authorization."
                )
        if given.algorithm != ALGORITHM:
            raise IncompleteSignatureException(
                f"Unsupported AWS 'algorithm': '{given.algorithm}' (only {ALGORITHM} for now). "
            )
        access_key_id, scope = _scope(given.credential, moment)
        secret = self._secrets.get(access_key_id)
        if secret is None:
            raise UnrecognizedClientException(
                "The security token included in the request is invalid."
            )
        canonical = _canonical(headers, signed_headers, query, body)
        to_sign = _to_sign(canonical, moment, scope)
        signature = _signature(secret, scope, to_sign)
        # Of both the same length of time is looked at, wherever they differ.
        if not hmac.compare_digest(signature.encode(), given.signature.encode()):
            raise InvalidSignatureException(
                "The request signature we calculated does not match the signature you provided. "
                "Check your AWS Secret Access Key and signing method. Consult the service "
                "documentation for details.\n\nThe Canonical String for this request should have "
                f"been\n'{canonical}'\n\nThe String-to-Sign should have been\n'{to_sign}'\n"
            )


def authorization(
    key: AccessKey, region: str, headers: Mapping[str, str], body: bytes, moment: datetime
) -> dict[str, str]:
    """The headers that sign a POST of this body; all of ``headers``, in lower case, are signed."""
    stamp = moment.astimezone(UTC).strftime(_MOMENT)
    signed = {**headers, DATE_HEADER: stamp}
    names = sorted(signed)
    scope = f"{stamp[:8]}/{region}/{_SERVICE}/{_TERMINATOR}"
    to_sign = _to_sign(_canonical(signed, names, "", body), stamp, scope)
    signature = _signature(key.secret_access_key, scope, to_sign)
    return {
        DATE_HEADER: stamp,
        "authorization": f"{ALGORITHM} Credential={key.access_key_id}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}",
    }


def _parsed(authorization: str, headers: Mapping[str, str]) -> _Authorization:
    algorithm, _, rest = authorization.partition(" ")
    parameters = {}
    for parameter in rest.replace(",", " ").split():
        name, _, text = parameter.partition("=")
        parameters[name] = text
    lacking = [
        f"Authorization header requires '{name}' parameter. "
        for name in _PARAMETERS
        if not parameters.get(name)
    ]
    if not headers.get(DATE_HEADER):
        lacking.append(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        )
    if lacking:
        raise IncompleteSignatureException("".join(lacking) + f"Authorization={authorization}")
    return _Authorization(
        algorithm, parameters["Credential"], parameters["SignedHeaders"], parameters["Signature"]
    )


def _check_moment(moment: str, now_epoch_seconds: float) -> None:
    """Refuse a signature that is old, or of a time to come."""
    signed_at = _epoch_seconds(moment)
    if signed_at is None:
        raise IncompleteSignatureException(
            f"Date must be in ISO-8601 'basic format'. Got '{moment}'. "
            "See http://en.wikipedia.org/wiki/ISO_8601"
        )
    if signed_at < now_epoch_seconds - _SKEW_SECONDS:
        earliest = _stamp(now_epoch_seconds - _SKEW_SECONDS)
        raise InvalidSignatureException(
            f"Signature expired: {moment} is now earlier than {earliest} "
            f"({_stamp(now_epoch_seconds)} - {_SKEW_MINUTES} min.)"
        )
    if signed_at > now_epoch_seconds + _SKEW_SECONDS:
        latest = _stamp(now_epoch_seconds + _SKEW_SECONDS)
        raise InvalidSignatureException(
            f"Signature not yet current: {moment} is still later than {latest} "
            f"({_stamp(now_epoch_seconds)} + {_SKEW_MINUTES} min.)"
        )


@lru_cache(maxsize=256)
def _epoch_seconds(moment: str) -> float | None:
    """The time of a stamp; requests of one second have the same. None: it is none."""
    if _IS_MOMENT.match(moment) is None:
        return None
    try:
        return datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp()
    except ValueError:
        # There is no such day.
        return None


def _stamp(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime(_MOMENT)


def _scope(credential: str, moment: str) -> tuple[str, str]:
    """The id of the key, and the scope of its use; any region will do, as all see the same."""
    elements = credential.rstrip("/").split("/")
    if len(elements) != _CREDENTIAL_ELEMENTS:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            f"keyid/date/region/service/term, got '{credential}'"
        )
    access_key_id, day, _, service, terminator = elements
    wrong = []
    if service != _SERVICE:
        wrong.append(f"Credential should be scoped to correct service: '{_SERVICE}'. ")
    if terminator != _TERMINATOR:
        wrong.append(
            f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', "
            f"not '{terminator}'. "
        )
    if day != moment[:8]:
        wrong.append(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
            f"HTTP: '{day}' != '{moment[:8]}', from '{moment}'."
        )
    if wrong:
        raise InvalidSignatureException("".join(wrong))
    return access_key_id, "/".join(elements[1:])


def _canonical(
    headers: Mapping[str, str], signed_headers: list[str], query: str, body: bytes
) -> str:
    """The one form of a request that both sides sign; headers are bytes, as Latin-1."""
    lines = "".join(
        f"{name}:{_SPACES.sub(' ', headers.get(name, '').strip())}\n" for name in signed_headers
    )
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(text, safe="-_.~"))
        for name, text in parse_qsl(query, keep_blank_values=True)
    )
    parameters = "&".join(f"{name}={text}" for name, text in pairs)
    return (
        f"POST\n/\n{parameters}\n{lines}\n{';'.join(signed_headers)}\n"
        f"{hashlib.sha256(body).hexdigest()}"
    )


def _to_sign(canonical: str, moment: str, scope: str) -> str:
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    return f"{ALGORITHM}\n{moment}\n{scope}\n{digest}"


def _signature(secret: str, scope: str, to_sign: str) -> str:
    return hmac.digest(_signing_key(secret, scope), to_sign.encode("latin-1"), "sha256").hex()


@lru_cache(maxsize=256)
def _signing_key(secret: str, scope: str) -> bytes:
    """The key of one day, region and service: most requests are of the last one's."""
    key = f"AWS4{secret}".encode()
    for element in scope.split("/"):
        key = hmac.digest(key, element.encode("latin-1"), "sha256")
    return key
