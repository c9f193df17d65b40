"""Verification of AWS signatures, version 4, and signing. Pure.

A signature covers the body, the time and the headers that it names. So nobody can change a request
on its way, or repeat it after the signature has expired.

Sources: IAM User Guide, "Create a signed AWS API request"; the order of the checks and their
messages as recorded from AWS by dynalite's authors.
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

from dynactor.api.keys.session_tokens import TOKEN_HEADER, SessionTokens
from dynactor.model.errors import (
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)

ALGORITHM: Final = "AWS4-HMAC-SHA256"
DATE_HEADER: Final = "x-amz-date"
# Some SDKs send the SHA-256 of the body in this header.
DIGEST_HEADER: Final = "x-amz-content-sha256"
_SERVICE: Final = "dynamodb"
_TERMINATOR: Final = "aws4_request"
_PARAMETERS: Final = ("Credential", "Signature", "SignedHeaders")
_CREDENTIAL_ELEMENTS: Final = 5
_TARGET_HEADER: Final = "x-amz-target"
_HTTP_DATE_HEADER: Final = "date"
# These headers must be signed: an attacker could change a request's operation or date.
_ALWAYS_SIGNED: Final = {"host": "Host", DATE_HEADER: "X-Amz-Date", _TARGET_HEADER: "X-Amz-Target"}
_ALWAYS_SIGNED_BY_HTTP_DATE: Final = {
    "host": "Host",
    _HTTP_DATE_HEADER: "Date",
    _TARGET_HEADER: "X-Amz-Target",
}
_MOMENT: Final = "%Y%m%dT%H%M%SZ"
_IS_MOMENT: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z", re.ASCII)
# RFC 9110, 5.6.7; botocore writes -0000 for GMT.
_IS_HTTP_DATE: Final = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}) "
    r"(?:GMT|[+-]0000)\Z",
    re.ASCII,
)
_IS_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)
# The largest difference between the clocks of a client and the server.
_SKEW_MINUTES: Final = 15
_SKEW_SECONDS: Final = 60 * _SKEW_MINUTES
# White space in the text of a header. Other bytes may be parts of UTF-8 characters.
_WHITE: Final = " \t"
_SPACES: Final = re.compile(f"[{_WHITE}]+")
_AS_BYTES: Final = "surrogateescape"


class AccessKey(NamedTuple):
    """A key pair."""

    access_key_id: str
    secret_access_key: str

    def __repr__(self) -> str:
        """Omit the secret: this text may be logged."""
        return f"AccessKey({self.access_key_id!r}, …)"


class _Authorization(NamedTuple):
    """The fields of an Authorization header."""

    algorithm: str
    credential: str
    signed_headers: str
    signature: str


class _SignatureClaim(NamedTuple):
    """The signature of a request by a known key, with what is needed to verify it."""

    access_key_id: str
    signature: str
    secret: str
    scope: str
    moment: str
    signed_headers: list[str]

    def check(self, headers: Mapping[str, str], query: str, digest: str) -> None:
        """Refuse the request unless the key has signed it with a body of this SHA-256."""
        canonical = _canonical(headers, self.signed_headers, query, digest)
        to_sign = _to_sign(canonical, self.moment, self.scope)
        signature = _signature(self.secret, self.scope, to_sign)
        # The comparison takes the same time for any difference, so its time reveals nothing.
        if (
            not hmac.compare_digest(signature.encode(), self.signature.encode())
            or self.declared_digest(headers, digest) != digest
        ):
            raise InvalidSignatureException(
                "The request signature we calculated does not match the signature you provided. "
                "Check your AWS Secret Access Key and signing method. Consult the service "
                "documentation for details.\n\nThe Canonical String for this request should have "
                f"been\n'{canonical}'\n\nThe String-to-Sign should have been\n'{to_sign}'\n"
            )

    def declared_digest(self, headers: Mapping[str, str], otherwise: str) -> str:
        """The body's SHA-256 from a signed header; ``otherwise`` if there is no such header.

        Other values of the header, such as UNSIGNED-PAYLOAD, belong to S3 and are ignored.
        """
        given = headers.get(DIGEST_HEADER)
        if given is None or DIGEST_HEADER not in self.signed_headers:
            return otherwise
        return given if _IS_DIGEST.match(given) else otherwise


class Signatures:
    """Verifies signatures of the known keys."""

    def __init__(
        self, access_keys: tuple[AccessKey, ...], tokens: SessionTokens | None = None
    ) -> None:
        """``tokens`` verifies temporary credentials; without it there are none."""
        self.replace(access_keys)
        self._tokens = tokens

    def replace(self, access_keys: tuple[AccessKey, ...]) -> None:
        """Verify signatures of these keys from now on."""
        self._secrets = {key.access_key_id: key.secret_access_key for key in access_keys}

    def check(
        self,
        headers: Mapping[str, str],
        query: str,
        body: bytes,
        now_epoch_seconds: float,
        service: str = _SERVICE,
    ) -> str:
        """The id of the key that has signed a POST; names of ``headers`` are in lower case.

        Raises:
            MissingAuthenticationTokenException: the request has no signature.
            IncompleteSignatureException: the signature lacks a part.
            UnrecognizedClientException: the key or its session token is unknown.
            ExpiredTokenException: the session token has expired.
            InvalidSignatureException: the signature is too old, in the future or wrong.
        """
        claim = self._claim(headers, query, now_epoch_seconds, service)
        claim.check(headers, query, hashlib.sha256(body).hexdigest())
        return claim.access_key_id

    def check_head(self, headers: Mapping[str, str], query: str, now_epoch_seconds: float) -> None:
        """Refuse a head that ``check`` would refuse with any body.

        If a signed header has the body's SHA-256, the signature is verified too. A node that can't
        verify session tokens leaves them to the home of the tables. Raises as ``check``.
        """
        if self._tokens is not None and not self._tokens.has_key and TOKEN_HEADER in headers:
            return
        claim = self._claim(headers, query, now_epoch_seconds)
        digest = claim.declared_digest(headers, "")
        if digest:
            claim.check(headers, query, digest)

    def _claim(
        self,
        headers: Mapping[str, str],
        query: str,
        now_epoch_seconds: float,
        service: str = _SERVICE,
    ) -> _SignatureClaim:
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
        moment, always_signed = headers.get(DATE_HEADER), _ALWAYS_SIGNED
        if not moment:
            moment = _moment_of_http_date(headers[_HTTP_DATE_HEADER])
            always_signed = _ALWAYS_SIGNED_BY_HTTP_DATE
        _check_moment(moment, now_epoch_seconds)
        signed_headers = given.signed_headers.lower().split(";")
        for name, shown in always_signed.items():
            # Only DynamoDB's requests have the header of the operation.
            if name not in signed_headers and (service == _SERVICE or name != _TARGET_HEADER):
                raise InvalidSignatureException(
                    f"'{shown}' must be a 'SignedHeader' in the AWS Authorization."
                )
        if given.algorithm != ALGORITHM:
            raise IncompleteSignatureException(
                f"Unsupported AWS 'algorithm': '{given.algorithm}' (only {ALGORITHM} for now). "
            )
        access_key_id, scope = _scope(given.credential, moment, service)
        secret = self._secrets.get(access_key_id)
        if secret is None and self._tokens is not None and TOKEN_HEADER in headers:
            secret = self._tokens.secret(headers[TOKEN_HEADER], access_key_id, now_epoch_seconds)
        if secret is None:
            raise UnrecognizedClientException(
                "The security token included in the request is invalid."
            )
        return _SignatureClaim(
            access_key_id, given.signature, secret, scope, moment, signed_headers
        )


def authorization(
    key: AccessKey,
    region: str,
    headers: Mapping[str, str],
    body: bytes,
    moment: datetime,
    *,
    service: str = _SERVICE,
) -> dict[str, str]:
    """The headers that sign a POST of this body. All ``headers``, in lower case, are signed."""
    stamp = moment.astimezone(UTC).strftime(_MOMENT)
    signed = {**headers, DATE_HEADER: stamp}
    names = sorted(signed)
    scope = f"{stamp[:8]}/{region}/{service}/{_TERMINATOR}"
    digest = hashlib.sha256(body).hexdigest()
    to_sign = _to_sign(_canonical(signed, names, "", digest), stamp, scope)
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
    if not headers.get(DATE_HEADER) and not headers.get(_HTTP_DATE_HEADER):
        lacking.append(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        )
    if lacking:
        raise IncompleteSignatureException("".join(lacking) + f"Authorization={authorization}")
    return _Authorization(
        algorithm, parameters["Credential"], parameters["SignedHeaders"], parameters["Signature"]
    )


def _moment_of_http_date(text: str) -> str:
    """The timestamp in a Date header, in the form of X-Amz-Date; invalid text is unchanged."""
    date = _IS_HTTP_DATE.match(text)
    if date is None:
        return text
    try:
        return datetime.strptime(date[1], "%d %b %Y %H:%M:%S").replace(tzinfo=UTC).strftime(_MOMENT)
    except ValueError:
        # The calendar has no such day.
        return text


def _check_moment(moment: str, now_epoch_seconds: float) -> None:
    """Refuse a signature that is too old or in the future."""
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
    """The time of an X-Amz-Date, None if invalid; cached, because many requests have the same."""
    if _IS_MOMENT.match(moment) is None:
        return None
    try:
        return datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp()
    except ValueError:
        # The calendar has no such day.
        return None


def _stamp(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime(_MOMENT)


def _scope(credential: str, moment: str, wanted_service: str) -> tuple[str, str]:
    """The key's id and scope. Any region is valid here."""
    elements = credential.rstrip("/").split("/")
    if len(elements) != _CREDENTIAL_ELEMENTS:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            f"keyid/date/region/service/term, got '{credential}'"
        )
    access_key_id, day, _, service, terminator = elements
    wrong = []
    if service != wanted_service:
        wrong.append(f"Credential should be scoped to correct service: '{wanted_service}'. ")
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
    headers: Mapping[str, str], signed_headers: list[str], query: str, digest: str
) -> str:
    """The canonical form of a request, which both sides sign; headers are bytes as Latin-1."""
    texts = [headers.get(name, "").strip(_WHITE) for name in signed_headers]
    lines = "".join([f"{name}:{text}\n" for name, text in zip(signed_headers, texts, strict=True)])
    if "  " in lines or "\t" in lines:
        lines = _SPACES.sub(" ", lines)
    parameters = _canonical_query(query) if query else ""
    return f"POST\n/\n{parameters}\n{lines}\n{';'.join(signed_headers)}\n{digest}"


def _canonical_query(query: str) -> str:
    """The parameters, sorted and in one spelling. Bytes that are not UTF-8 stay unchanged."""
    pairs = sorted(
        (_quoted(name), _quoted(text))
        for name, text in parse_qsl(query, keep_blank_values=True, errors=_AS_BYTES)
    )
    return "&".join(f"{name}={text}" for name, text in pairs)


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~", errors=_AS_BYTES)


def _to_sign(canonical: str, moment: str, scope: str) -> str:
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    return f"{ALGORITHM}\n{moment}\n{scope}\n{digest}"


def _signature(secret: str, scope: str, to_sign: str) -> str:
    return hmac.digest(_signing_key(secret, scope), to_sign.encode("latin-1"), "sha256").hex()


@lru_cache(maxsize=256)
def _signing_key(secret: str, scope: str) -> bytes:
    """The key of one day, region and service, cached because most requests share it."""
    key = f"AWS4{secret}".encode()
    for element in scope.split("/"):
        key = hmac.digest(key, element.encode("latin-1"), "sha256")
    return key
