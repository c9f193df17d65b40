"""The condition keys that policies may use.

Source: Service Authorization Reference, "Condition keys for Amazon DynamoDB" and "Condition keys
for Amazon S3"; IAM User Guide, "AWS global condition context keys".
"""

from __future__ import annotations

from typing import Final

# By the name in lower case, because names of condition keys are not case-sensitive.
_SINGLE: Final = """
    aws:CurrentTime aws:EpochTime aws:PrincipalArn aws:RequestedRegion aws:SecureTransport
    aws:SourceIp aws:UserAgent aws:userid aws:username dynamodb:EnclosingOperation
    dynamodb:FullTableScan dynamodb:ReturnConsumedCapacity dynamodb:ReturnValues dynamodb:Select
    s3:prefix sts:ExternalId sts:RoleSessionName
"""
# Keys whose requests may have several values; a condition needs ForAllValues or ForAnyValue.
_SEVERAL: Final = """
    aws:TagKeys dynamodb:Attributes dynamodb:FirstPartitionKeyValues
    dynamodb:FourthPartitionKeyValues dynamodb:LeadingKeys dynamodb:SecondPartitionKeyValues
    dynamodb:ThirdPartitionKeyValues
"""
# A tag's key follows.
_TAGS: Final = ("aws:PrincipalTag/", "aws:RequestTag/", "aws:ResourceTag/")

_NAMES_OF_SEVERAL: Final = set(_SEVERAL.lower().split())
_NAMES: Final = {*_SINGLE.lower().split(), *_NAMES_OF_SEVERAL}
_PREFIXES_OF_TAGS: Final = tuple(prefix.lower() for prefix in _TAGS)


def is_known(key: str) -> bool:
    """Whether a condition key, in lower case, exists."""
    return key in _NAMES or any(
        key.startswith(prefix) and len(key) > len(prefix) for prefix in _PREFIXES_OF_TAGS
    )


def has_several_values(key: str) -> bool:
    """Whether requests may have several values of a condition key, which is in lower case."""
    return key in _NAMES_OF_SEVERAL
