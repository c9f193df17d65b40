"""Checks of signatures: botocore's are accepted, and invalid ones get the errors of AWS."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote, urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import assume, given
from hypothesis import strategies as st

from dynactor.api.keys.signature import AccessKey, Signatures, authorization
from dynactor.model.errors import (
    DynamoDBError,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)
from tests.support.clients.signing import signed_by_hand

KEY = AccessKey("AKIATEST", "se%cr/et+1")
SIGNATURES = Signatures((KEY, AccessKey("AKIAOTHER", "other")))
BODY = b'{"TableName":"Thread"}'
TARGET = "DynamoDB_20120810.DescribeTable"
URL = "http://localhost:8000/"


def by_botocore(
    body: bytes = BODY, key: AccessKey = KEY, token: str | None = None, **headers: str
) -> dict[str, str]:
    """The headers of a request signed by botocore; the names are in lower case."""
    given_headers = {"X-Amz-Target": TARGET, "Content-Type": "application/x-amz-json-1.0"}
    request = AWSRequest("POST", URL, headers=given_headers | headers, data=body)
    request.headers["Host"] = "localhost:8000"
    SigV4Auth(Credentials(*key, token), "dynamodb", "eu-west-1").add_auth(request)
    return {name.lower(): text for name, text in request.headers.items()}


def by_hand(headers: dict[str, str], digest: str, stamp: str, query: str = "") -> dict[str, str]:
    return signed_by_hand(headers, digest, stamp, KEY, query)


def refused(
    headers: dict[str, str], *, query: str = "", body: bytes = BODY, now: float | None = None
) -> DynamoDBError:
    with pytest.raises(DynamoDBError) as caught:
        SIGNATURES.check(headers, query, body, time.time() if now is None else now)
    return caught.value


def seconds_of(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


NOW = seconds_of("20260101T000000Z")


@given(
    body=st.binary(max_size=200),
    words=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20),
    spaces=st.integers(0, 5),
    token=st.sampled_from([None, "a+session/token=="]),
)
def test_a_signature_of_botocore_is_accepted(
    body: bytes, words: str, spaces: int, token: str | None
):
    headers = by_botocore(body, token=token, Note=f"{words}{' ' * spaces}{words}")
    assert SIGNATURES.check(headers, "", body, time.time()) == KEY.access_key_id


# Values of headers, with white space around words and several spaces between them.
LINES = st.text(st.characters(min_codepoint=33, max_codepoint=126) | st.sampled_from(" \t"))


@given(
    note=st.lists(LINES, min_size=1, max_size=3),
    dated=st.booleans(),
    told=st.booleans(),
    query=st.lists(st.tuples(st.text(), st.text()), max_size=3),
)
def test_a_signature_of_botocore_is_accepted_with_any_white_space(
    note: list[str], query: list[tuple[str, str]], *, dated: bool, told: bool
):
    url = f"{URL}?{urlencode(query, quote_via=quote)}" if query else URL
    request = AWSRequest("POST", url, headers={"X-Amz-Target": TARGET}, data=BODY)
    request.headers["hOST"] = "localhost:8000"
    for text in note:
        # Assigning adds a header, so the header occurs once for each text.
        request.headers["Note"] = text
    if dated:
        request.headers["Date"] = "any"
    if told:
        request.headers["X-Amz-Content-SHA256"] = sha256(BODY).hexdigest()
    SigV4Auth(Credentials(*KEY), "dynamodb", "eu-west-1").add_auth(request)
    headers: dict[str, str] = {}
    for name, text in request.headers.items():
        # Join repeated headers as ``dynactor.api.http.aiohttp_lane`` does.
        found, stripped = headers.get(name.lower()), text.strip(" \t")
        headers[name.lower()] = stripped if found is None else f"{found},{stripped}"
    assert ("x-amz-date" in headers) is not dated
    raw_query = url.partition("?")[2]
    SIGNATURES.check(headers, raw_query, BODY, time.time())
    SIGNATURES.check_head(headers, raw_query, time.time())


# The parts that a client can't change without the key: all signed parts, and the signature.
SIGNED = ("host", "x-amz-target", "x-amz-date", "content-type", "x-amz-security-token", "note")
ANY_SIGNED = st.sampled_from([*SIGNED, "authorization", "body", "query"])


@given(part=ANY_SIGNED, at=st.integers(0, 1000), byte=st.integers(33, 126))
def test_a_single_changed_byte_is_detected(part: str, at: int, byte: int):
    parts = by_botocore(token="a+session/token==", Note="a  note") | {
        "body": BODY.decode(),
        "query": "ab=cd",
    }
    stamp = parts["x-amz-date"]
    signed = {name: parts[name].replace("  ", " ") for name in SIGNED}
    parts |= by_hand(signed, sha256(BODY).hexdigest(), stamp, parts["query"])
    whole = parts[part]
    at %= len(whole)
    changed = f"{whole[:at]}{chr(byte)}{whole[at + 1 :]}"
    if part == "authorization":
        # Names of headers and parameters ignore case; commas count as white space.
        assume(changed.lower() != whole.lower() or at > whole.index("Signature="))
        assume(changed.replace(",", " ") != whole.replace(",", " "))
    assume(changed != whole)
    given_parts = parts | {part: changed}
    body, query = given_parts.pop("body").encode(), given_parts.pop("query")
    SIGNATURES.check(parts, parts["query"], BODY, seconds_of(stamp))
    refused(given_parts, query=query, body=body, now=seconds_of(stamp))


def test_bytes_of_utf_8_at_the_end_of_a_header_are_no_white_space():
    stamp = "20260101T000000Z"
    # In Latin-1, the last byte of à is a non-breaking space.
    headers = {
        "host": "localhost:8000",
        "note": "voilà".encode().decode("latin-1"),
        "x-amz-date": stamp,
        "x-amz-target": TARGET,
    }
    signed = by_hand(headers, sha256(BODY).hexdigest(), stamp)
    assert SIGNATURES.check(signed, "", BODY, seconds_of(stamp)) == KEY.access_key_id


@pytest.mark.parametrize("query", ["a=%FF", "a=\udcff"], ids=["quoted", "bare"])
def test_a_query_string_that_is_not_utf_8_is_signed_as_bytes(query: str):
    stamp = "20260101T000000Z"
    headers = {"host": "localhost:8000", "x-amz-date": stamp, "x-amz-target": TARGET}
    signed = by_hand(headers, sha256(BODY).hexdigest(), stamp, "a=%FF")
    SIGNATURES.check(signed, query, BODY, seconds_of(stamp))
    refused(signed, query=query.replace("a", "b"), now=seconds_of(stamp))


def dated(text: str, digest: str = sha256(BODY).hexdigest()) -> dict[str, str]:
    """The headers of a request with the header Date instead of X-Amz-Date."""
    headers = {"date": text, "host": "localhost:8000", "x-amz-target": TARGET}
    return by_hand(headers, digest, "20260101T000000Z")


@pytest.mark.parametrize(
    "text",
    ["Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 -0000", "20260101T000000Z"],
)
def test_a_request_may_be_dated_by_its_date_header(text: str):
    SIGNATURES.check(dated(text), "", BODY, NOW)
    late = refused(dated(text), now=NOW + 901)
    assert late.message.startswith("Signature expired: 20260101T000000Z is now earlier than ")
    headers = dated(text)
    unsigned = headers["authorization"].replace("SignedHeaders=date;", "SignedHeaders=")
    error = refused(headers | {"authorization": unsigned}, now=NOW)
    assert error.message == "'Date' must be a 'SignedHeader' in the AWS Authorization."


def test_x_amz_date_is_used_if_both_dates_are_present():
    old = "Thu, 01 Jan 2015 00:00:00 GMT"
    signed = by_botocore() | {"date": old}
    assert SIGNATURES.check(signed, "", BODY, time.time()) == KEY.access_key_id


@pytest.mark.parametrize(
    "text", ["Thu, 01 Foo 2026 00:00:00 GMT", "Thu, 31 Feb 2026 00:00:00 GMT", "2026-01-01"]
)
def test_an_invalid_date_header_is_reported(text: str):
    assert refused(dated(text), now=NOW).message == (
        f"Date must be in ISO-8601 'basic format'. Got '{text}'. "
        "See http://en.wikipedia.org/wiki/ISO_8601"
    )


def told(digest: str, signed_digest: str, *, is_signed: bool = True) -> dict[str, str]:
    """The headers of a request whose hash of the body differs from the signed hash."""
    stamp = "20260101T000000Z"
    headers = {"host": "localhost:8000", "x-amz-date": stamp, "x-amz-target": TARGET}
    header = {"x-amz-content-sha256": digest}
    if is_signed:
        return by_hand(headers | header, signed_digest, stamp)
    return by_hand(headers, signed_digest, stamp) | header


OF_BODY = sha256(BODY).hexdigest()
OF_ANOTHER = sha256(b"{}").hexdigest()


@pytest.mark.parametrize(
    "payload",
    [
        "UNSIGNED-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    ],
)
def test_a_body_other_than_the_signed_one_is_refused_regardless_of_the_hash_header(payload: str):
    error = refused(told(payload, payload), now=NOW)
    assert isinstance(error, InvalidSignatureException)
    assert error.message.partition("The String-to-Sign")[0].rstrip().endswith(f"{OF_BODY}'")
    SIGNATURES.check(told(payload, OF_BODY), "", BODY, NOW)


def test_a_signed_hash_must_match_the_body():
    SIGNATURES.check(told(OF_BODY, OF_BODY), "", BODY, NOW)
    for other in (OF_BODY, OF_ANOTHER):
        assert isinstance(refused(told(OF_ANOTHER, other), now=NOW), InvalidSignatureException)
    # An unsigned hash header is ignored, because it may have been changed in transit.
    SIGNATURES.check(told(OF_ANOTHER, OF_BODY, is_signed=False), "", BODY, NOW)


def head_refused(headers: dict[str, str], *, query: str = "", now: float = NOW) -> DynamoDBError:
    with pytest.raises(DynamoDBError) as caught:
        SIGNATURES.check_head(headers, query, now)
    return caught.value


def test_a_head_with_a_hash_can_be_checked_without_the_body():
    SIGNATURES.check_head(told(OF_BODY, OF_BODY), "", NOW)
    signed = told(OF_BODY, OF_BODY)
    for change in ({"host": "else"}, {"x-amz-content-sha256": OF_ANOTHER}):
        assert isinstance(head_refused(signed | change), InvalidSignatureException)
    changed = head_refused(signed | {"host": "else"})
    assert changed.message == refused(signed | {"host": "else"}, now=NOW).message


def test_a_head_without_a_hash_cannot_be_checked_without_the_body():
    for headers in (
        told(OF_ANOTHER, OF_BODY, is_signed=False),
        told("UNSIGNED-PAYLOAD", OF_ANOTHER),
        by_botocore(),
    ):
        moment = seconds_of(headers["x-amz-date"])
        SIGNATURES.check_head(headers | {"host": "else"}, "", moment)
        refused(headers | {"host": "else"}, now=moment)


def test_a_signature_of_the_commands_is_accepted():
    headers = {"host": "localhost:8000", "x-amz-target": TARGET}
    headers |= authorization(KEY, "local", headers, BODY, datetime.now(UTC))
    assert SIGNATURES.check(headers, "", BODY, time.time()) == KEY.access_key_id


def test_signed_headers_may_be_named_in_capitals():
    headers = by_botocore()
    before, _, rest = headers["authorization"].partition("SignedHeaders=")
    names, _, signature = rest.partition(",")
    capitals = f"{before}SignedHeaders={names.title()},{signature}"
    signed = headers | {"authorization": capitals}
    assert SIGNATURES.check(signed, "", BODY, time.time()) == KEY.access_key_id


def test_each_key_has_its_own_secret():
    swapped = by_botocore(key=AccessKey("AKIAOTHER", KEY.secret_access_key))
    assert isinstance(refused(swapped), InvalidSignatureException)


@pytest.mark.parametrize("name", ["host", "x-amz-target", "x-amz-date", "content-type"])
def test_a_changed_signed_header_is_detected(name: str):
    headers = by_botocore()
    day, _, rest = headers["x-amz-date"].partition("T")
    changed = f"{day}T{(int(rest[:-1]) + 1) % 240000:06d}Z" if name == "x-amz-date" else "else"
    error = refused(headers | {name: changed}, now=seconds_of(headers["x-amz-date"]))
    assert isinstance(error, InvalidSignatureException)


def test_a_changed_body_is_detected():
    headers = by_botocore()
    error = refused(headers, body=b'{"TableName":"Forum"}')
    assert isinstance(error, InvalidSignatureException)
    assert error.message.startswith(
        "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for "
        "details.\n\nThe Canonical String for this request should have been\n'POST\n/\n\n"
        "content-type:application/x-amz-json-1.0\nhost:localhost:8000\n"
    )
    assert KEY.secret_access_key not in error.message


def test_a_query_string_is_signed():
    assert isinstance(refused(by_botocore(), query="a=1"), InvalidSignatureException)


def test_a_signature_is_valid_for_15_minutes():
    headers = by_botocore()
    stamp = headers["x-amz-date"]
    signed_at = seconds_of(stamp)
    SIGNATURES.check(headers, "", BODY, signed_at + 900)
    SIGNATURES.check(headers, "", BODY, signed_at - 900)
    late = refused(headers, now=signed_at + 901)
    assert isinstance(late, InvalidSignatureException)
    later = datetime.fromtimestamp(signed_at + 901, UTC).strftime("%Y%m%dT%H%M%SZ")
    earliest = datetime.fromtimestamp(signed_at + 1, UTC).strftime("%Y%m%dT%H%M%SZ")
    assert late.message == (
        f"Signature expired: {stamp} is now earlier than {earliest} ({later} - 15 min.)"
    )
    early = refused(headers, now=signed_at - 901)
    assert isinstance(early, InvalidSignatureException)
    assert early.message.startswith(f"Signature not yet current: {stamp} is still later than ")


SCOPE = "20260101/us-east-1/dynamodb/aws4_request"
HEADER = "AWS4-HMAC-SHA256 Credential={}, SignedHeaders=host;x-amz-date;x-amz-target, Signature=a"

REFUSALS = [
    ("", MissingAuthenticationTokenException, "Request is missing Authentication Token"),
    ("Basic YTph", MissingAuthenticationTokenException, "Request is missing Authentication Token"),
    (
        "AWS4-HMAC-SHA256 Credential=a",
        IncompleteSignatureException,
        (
            "Authorization header requires 'Signature' parameter. Authorization header requires "
            "'SignedHeaders' parameter. Authorization=AWS4-HMAC-SHA256 Credential=a"
        ),
    ),
    (
        f"AWS4-HMAC-SHA256 Credential=a/{SCOPE}, SignedHeaders=x-amz-date, Signature=a",
        InvalidSignatureException,
        "'Host' must be a 'SignedHeader' in the AWS Authorization.",
    ),
    (
        f"AWS4-HMAC-SHA256 Credential=a/{SCOPE}, SignedHeaders=host;x-amz-date, Signature=a",
        InvalidSignatureException,
        "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.",
    ),
    (
        HEADER.format("a/b").replace("SHA256", "SHA1"),
        IncompleteSignatureException,
        "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA1' (only AWS4-HMAC-SHA256 for now). ",
    ),
    (
        HEADER.format("a/b/c/d"),
        IncompleteSignatureException,
        (
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            "keyid/date/region/service/term, got 'a/b/c/d'"
        ),
    ),
    (
        HEADER.format("a/b/c/d/e"),
        InvalidSignatureException,
        (
            "Credential should be scoped to correct service: 'dynamodb'. "
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. "
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
            "HTTP: 'b' != '20260101', from '20260101T000000Z'."
        ),
    ),
    (
        HEADER.format(f"nobody/{SCOPE}"),
        UnrecognizedClientException,
        "The security token included in the request is invalid.",
    ),
]


@pytest.mark.parametrize(("header", "kind", "message"), REFUSALS)
def test_an_invalid_signature_is_refused_with_the_message_of_aws(
    header: str, kind: type[DynamoDBError], message: str
):
    headers = {"x-amz-date": "20260101T000000Z", "x-amz-target": TARGET, "host": "localhost"}
    if header:
        headers["authorization"] = header
    for error in (refused(headers, now=NOW), head_refused(headers)):
        assert type(error) is kind
        assert error.message == message


@pytest.mark.parametrize("moment", ["201", "20260101T000000", "20261301T000000Z"])
def test_an_invalid_date_is_reported(moment: str):
    headers = {"authorization": HEADER.format(f"a/{SCOPE}"), "x-amz-date": moment}
    error = refused(headers, now=NOW)
    assert type(error) is IncompleteSignatureException
    assert error.message == (
        f"Date must be in ISO-8601 'basic format'. Got '{moment}'. "
        "See http://en.wikipedia.org/wiki/ISO_8601"
    )


def test_a_request_without_a_date_is_refused_clearly():
    header = HEADER.format(f"a/{SCOPE}")
    error = refused({"authorization": header}, now=NOW)
    assert error.message == (
        "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        f"Authorization={header}"
    )


def test_a_signature_in_the_query_string_is_refused():
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=a"
    assert isinstance(refused({}, query=query), IncompleteSignatureException)
    both = refused(by_botocore(), query=query)
    assert both.message == (
        "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
    )


# Headers are bytes, which the server decodes as Latin-1.
TEXT = st.text(st.characters(max_codepoint=255), max_size=80)


@given(header=TEXT, moment=TEXT, names=TEXT)
def test_random_headers_are_refused_with_a_dynamodb_error(header: str, moment: str, names: str):
    headers = {
        "authorization": f"AWS4-HMAC-SHA256 Credential={KEY.access_key_id}/{SCOPE}, "
        f"SignedHeaders=host;x-amz-date;x-amz-target;{names}, Signature={header}",
        "x-amz-date": moment or "20260101T000000Z",
        "note": header,
    }
    refused(headers, now=NOW)
    refused({**headers, "authorization": f"AWS4-{header}"}, now=NOW)
    by_date = {name: text for name, text in headers.items() if name != "x-amz-date"}
    refused(by_date | {"date": moment}, query=names, now=NOW)


def test_the_text_form_of_an_access_key_has_no_secret():
    assert KEY.secret_access_key not in repr(KEY)
    assert KEY.secret_access_key not in str((KEY,))
