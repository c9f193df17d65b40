"""Signatures as botocore makes them are taken; any other is refused, in AWS's order and words."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from api.signature import AccessKey, Signatures, authorization
from model.errors import (
    DynamoDBError,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)

KEY = AccessKey("AKIATEST", "se%cr/et+1")
SIGNATURES = Signatures((KEY, AccessKey("AKIAOTHER", "other")))
BODY = b'{"TableName":"Thread"}'
TARGET = "DynamoDB_20120810.DescribeTable"
URL = "http://localhost:8000/"


def by_botocore(
    body: bytes = BODY, key: AccessKey = KEY, token: str | None = None, **headers: str
) -> dict[str, str]:
    """The headers of a request that botocore has signed just now, names in lower case."""
    given_headers = {"X-Amz-Target": TARGET, "Content-Type": "application/x-amz-json-1.0"}
    request = AWSRequest("POST", URL, headers=given_headers | headers, data=body)
    request.headers["Host"] = "localhost:8000"
    SigV4Auth(Credentials(*key, token), "dynamodb", "eu-west-1").add_auth(request)
    return {name.lower(): text for name, text in request.headers.items()}


def refused(
    headers: dict[str, str], *, query: str = "", body: bytes = BODY, now: float | None = None
) -> DynamoDBError:
    with pytest.raises(DynamoDBError) as caught:
        SIGNATURES.check(headers, query, body, time.time() if now is None else now)
    return caught.value


def seconds_of(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


@given(
    body=st.binary(max_size=200),
    words=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20),
    spaces=st.integers(0, 5),
    token=st.sampled_from([None, "a+session/token=="]),
)
def test_what_botocore_signs_is_taken(body: bytes, words: str, spaces: int, token: str | None):
    headers = by_botocore(body, token=token, Note=f"{words}{' ' * spaces}{words}")
    SIGNATURES.check(headers, "", body, time.time())


def test_what_the_commands_sign_is_taken():
    headers = {"host": "localhost:8000", "x-amz-target": TARGET}
    headers |= authorization(KEY, "local", headers, BODY, datetime.now(UTC))
    SIGNATURES.check(headers, "", BODY, time.time())


def test_signed_headers_may_be_named_in_capitals():
    headers = by_botocore()
    before, _, rest = headers["authorization"].partition("SignedHeaders=")
    names, _, signature = rest.partition(",")
    capitals = f"{before}SignedHeaders={names.title()},{signature}"
    SIGNATURES.check(headers | {"authorization": capitals}, "", BODY, time.time())


def test_each_key_has_its_own_secret():
    swapped = by_botocore(key=AccessKey("AKIAOTHER", KEY.secret_access_key))
    assert isinstance(refused(swapped), InvalidSignatureException)


@pytest.mark.parametrize("name", ["host", "x-amz-target", "x-amz-date", "content-type"])
def test_a_signed_header_that_was_changed_is_noticed(name: str):
    headers = by_botocore()
    day, _, rest = headers["x-amz-date"].partition("T")
    changed = f"{day}T{(int(rest[:-1]) + 1) % 240000:06d}Z" if name == "x-amz-date" else "else"
    error = refused(headers | {name: changed}, now=seconds_of(headers["x-amz-date"]))
    assert isinstance(error, InvalidSignatureException)


def test_a_body_that_was_changed_is_noticed():
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


def test_a_query_string_is_signed_too():
    assert isinstance(refused(by_botocore(), query="a=1"), InvalidSignatureException)


def test_a_signature_counts_for_a_quarter_of_an_hour():
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
NOW = seconds_of("20260101T000000Z")
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
def test_what_is_wrong_is_told_in_the_words_of_aws(
    header: str, kind: type[DynamoDBError], message: str
):
    headers = {"x-amz-date": "20260101T000000Z", "x-amz-target": TARGET, "host": "localhost"}
    if header:
        headers["authorization"] = header
    error = refused(headers, now=NOW)
    assert type(error) is kind
    assert error.message == message


@pytest.mark.parametrize("moment", ["201", "20260101T000000", "20261301T000000Z"])
def test_a_date_that_is_none_is_told(moment: str):
    headers = {"authorization": HEADER.format(f"a/{SCOPE}"), "x-amz-date": moment}
    error = refused(headers, now=NOW)
    assert type(error) is IncompleteSignatureException
    assert error.message == (
        f"Date must be in ISO-8601 'basic format'. Got '{moment}'. "
        "See http://en.wikipedia.org/wiki/ISO_8601"
    )


def test_a_request_without_a_date_is_told_so():
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


# Headers are bytes, handed on as Latin-1.
TEXT = st.text(st.characters(max_codepoint=255), max_size=80)


@given(header=TEXT, moment=TEXT, names=TEXT)
def test_whatever_comes_is_refused_in_good_order(header: str, moment: str, names: str):
    headers = {
        "authorization": f"AWS4-HMAC-SHA256 Credential={KEY.access_key_id}/{SCOPE}, "
        f"SignedHeaders=host;x-amz-date;x-amz-target;{names}, Signature={header}",
        "x-amz-date": moment or "20260101T000000Z",
        "note": header,
    }
    refused(headers, now=NOW)
    refused({**headers, "authorization": f"AWS4-{header}"}, now=NOW)


def test_a_key_shows_no_secret():
    assert KEY.secret_access_key not in repr(KEY)
    assert KEY.secret_access_key not in str((KEY,))
