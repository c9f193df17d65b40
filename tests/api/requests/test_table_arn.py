"""Table names and table ARNs."""

from __future__ import annotations

import pytest

from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException

_INVALID = "Invalid table/index name.  Table/index names must be between 3 and 255"


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "arn:aws:dynamodb:us-east-1:123456789012:table/abc",
        "arn:aws-cn:dynamodb:cn-north-1::table/abc",
        "arn:aws:dynamodb:local:000000000000:table/abc",
    ],
)
def test_a_name_and_its_arns_name_the_same_table(text: str):
    assert table_name(text) == "abc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:b", "ARNs must start with 'arn:'"),
        ("arn:", "Valid ARN format is 'arn:<awsPartition>:"),
        ("arn:aws:dynamodb", "Valid ARN format is 'arn:<awsPartition>:"),
        ("arn:aws:s3:us-east-1:123456789012:table/abc", "Valid ARN format is"),
        ("arn:aws:dynamodb:us-east-1:123456789012:abc", "Valid ARN format is"),
        ("arn:aws:dynamodb:us-east-1:123456789012:table/ab", _INVALID),
        ("arn:aws:dynamodb:us-east-1:123456789012:table/abc/index/i", _INVALID),
        ("arn:aws:dynamodb:us-east-1:123456789012:table/", _INVALID),
        ("ab", _INVALID),
    ],
)
def test_the_error_for_a_malformed_name_says_why(text: str, message: str):
    with pytest.raises(ValidationException) as caught:
        table_name(text)
    assert caught.value.message.startswith(message)
