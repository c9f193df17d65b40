"""The region and the access key in a signature."""

from __future__ import annotations

import pytest

from dynactor.api.keys.credential_scope import credential_scope
from dynactor.model.errors import IncompleteSignatureException, InvalidSignatureException

BEHIND = "20260101/us-west-2/dynamodb/aws4_request"


@pytest.mark.parametrize("key_id", ["AKIA", "a-b_c.d", "with a space", "k" * 200, "é"])
def test_a_header_names_region_and_key(key_id: str):
    for header in (
        f"AWS4-HMAC-SHA256 Credential={key_id}/{BEHIND}, SignedHeaders=host, Signature=0",
        f"AWS4-HMAC-SHA256 SignedHeaders=host,Signature=0,Credential={key_id}/{BEHIND}",
    ):
        assert credential_scope(header, "") == ("us-west-2", key_id)


def test_a_query_string_names_region_and_key():
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F" + BEHIND.replace("/", "%2F")
    assert credential_scope("", f"{query}&X-Amz-Date=20260101T000000Z") == ("us-west-2", "AKIA")


@pytest.mark.parametrize(
    "credential",
    ["", "AKIA", "/" + BEHIND, "AKIA/us-west-2/dynamodb/aws4_request", "a\0b/" + BEHIND],
)
def test_a_credential_of_another_form_is_refused(credential: str):
    with pytest.raises(IncompleteSignatureException):
        credential_scope(f"AWS4-HMAC-SHA256 Credential={credential}", "")


@pytest.mark.parametrize("region", ["", "us_west", "us.west", "x" * 65])
def test_a_region_of_another_form_is_refused(region: str):
    with pytest.raises(InvalidSignatureException, match="valid region"):
        credential_scope(f"Credential=AKIA/20260101/{region}/dynamodb/aws4_request", "")
