"""A table of each condition operator: values of the policy and of the request, and the result.

Source: IAM User Guide, "IAM JSON policy elements: Condition operators" and "Set operators for
multi-value context keys"; examples of these pages.
"""

from __future__ import annotations

import pytest

from tests.support.access.deciding import ALLOWED, decision, policy

UA = "aws:UserAgent"
KEYS = "dynamodb:LeadingKeys"
ABSENT = "(absent)"

# Operator, key, values of the policy, values of the request, whether the condition holds.
TABLE_OF_TRUTH = [
    ("StringEquals", UA, ["a", "b"], "b", True),
    ("StringEquals", UA, ["a"], "A", False),
    ("StringEquals", UA, ["a*"], "ab", False),
    ("StringEquals", UA, ["a*"], "a*", True),
    ("StringEquals", UA, ["a"], ABSENT, False),
    ("StringEqualsIfExists", UA, ["a"], ABSENT, True),
    ("StringEqualsIfExists", UA, ["a"], "b", False),
    ("StringNotEquals", UA, ["a", "b"], "c", True),
    ("StringNotEquals", UA, ["a", "b"], "b", False),
    ("StringNotEquals", UA, ["a"], ABSENT, True),
    ("StringEqualsIgnoreCase", UA, ["JohnDoe"], "johnDOE", True),
    ("StringNotEqualsIgnoreCase", UA, ["JohnDoe"], "johnDOE", False),
    ("StringLike", UA, ["app-?/*"], "app-1/linux", True),
    ("StringLike", UA, ["app-?/*"], "app-/linux", False),
    ("StringLike", UA, ["a.c"], "abc", False),
    ("StringLike", UA, ["a?c"], "abc", True),
    ("StringLike", UA, ["a?c"], "abbc", False),
    ("StringLike", UA, ["?"], "", False),
    ("StringLike", UA, ["ab*ba"], "aba", False),
    ("StringLike", UA, ["*a?c*e?"], "xabbabcdefef", True),
    ("StringLike", UA, ["*a?c*e?"], "xabbabcdfe", False),
    ("StringLike", UA, ["*ab*ab*"], "xabab", True),
    ("StringLike", UA, ["*ab*ab*"], "xab", False),
    ("StringLike", UA, ["**"], "", True),
    ("StringLike", UA, ["a*c"], "a\nc", True),
    ("StringLike", UA, ["${*}x"], "*x", True),
    ("StringLike", UA, ["${*}x"], "yx", False),
    ("StringNotLike", UA, ["app-*"], "lib-1", True),
    ("StringNotLike", UA, ["app-*"], "app-1", False),
    ("NumericEquals", "aws:EpochTime", ["10"], "10.0", True),
    ("NumericNotEquals", "aws:EpochTime", ["10"], "10.0", False),
    ("NumericLessThan", "aws:EpochTime", ["9", "11"], "10", True),
    ("NumericLessThan", "aws:EpochTime", ["10"], "10", False),
    ("NumericLessThanEquals", "aws:EpochTime", ["10"], "10", True),
    ("NumericGreaterThan", "aws:EpochTime", ["10"], "10", False),
    ("NumericGreaterThanEquals", "aws:EpochTime", ["10"], "10", True),
    ("NumericGreaterThan", "aws:EpochTime", ["10"], "many", False),
    ("DateGreaterThan", "aws:CurrentTime", ["2020-04-01T00:00:00Z"], "2020-04-01T00:00:01Z", True),
    ("DateLessThan", "aws:CurrentTime", ["2020-06-30T23:59:59Z"], "2020-07-01T00:00:00Z", False),
    ("DateEquals", "aws:EpochTime", ["1970-01-02"], "86400", True),
    ("DateNotEquals", "aws:EpochTime", ["1970-01-02"], "86400", False),
    ("DateEquals", "aws:EpochTime", ["2024-02-29T12:00:00+02:00"], "1709200800", True),
    ("DateLessThanEquals", "aws:EpochTime", ["1970-01-02"], "86400", True),
    ("DateGreaterThanEquals", "aws:EpochTime", ["1970-01-02"], "86399.5", False),
    ("Bool", "aws:SecureTransport", ["true"], "true", True),
    ("Bool", "aws:SecureTransport", ["True"], "false", False),
    ("Bool", "aws:SecureTransport", ["true"], ABSENT, False),
    ("BoolIfExists", "aws:SecureTransport", ["true"], ABSENT, True),
    ("BinaryEquals", UA, ["QmluYXJ5"], "QmluYXJ5", True),
    ("BinaryEquals", UA, ["QmluYXJ5"], "QmluYXJ6", False),
    ("IpAddress", "aws:SourceIp", ["203.0.113.0/24"], "203.0.113.77", True),
    ("IpAddress", "aws:SourceIp", ["203.0.113.0/24"], "203.0.114.77", False),
    ("IpAddress", "aws:SourceIp", ["2001:db8::/32"], "2001:db8::1", True),
    ("IpAddress", "aws:SourceIp", ["203.0.113.5"], "203.0.113.5", True),
    ("NotIpAddress", "aws:SourceIp", ["203.0.113.0/24"], "203.0.113.77", False),
    ("NotIpAddress", "aws:SourceIp", ["203.0.113.0/24"], "10.0.0.1", True),
    ("ArnEquals", "aws:PrincipalArn", ["arn:aws:iam::*:user/al*"], "(caller)", True),
    ("ArnLike", "aws:PrincipalArn", ["arn:aws:iam::123456789012:user/?lice"], "(caller)", True),
    # A wildcard does not match beyond its field.
    ("ArnLike", "aws:PrincipalArn", ["arn:aws:*:*:user/alice:"], "(caller)", False),
    ("ArnNotEquals", "aws:PrincipalArn", ["arn:aws:iam::*:user/al*"], "(caller)", False),
    ("ArnNotLike", "aws:PrincipalArn", ["arn:aws:iam::*:role/*"], "(caller)", True),
    ("Null", KEYS, ["true"], ABSENT, True),
    ("Null", KEYS, ["true"], ["a"], False),
    ("Null", KEYS, ["false"], ["a"], True),
    ("Null", UA, ["false"], ABSENT, False),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], ["a", "b"], True),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], ["a", "c"], False),
    ("ForAllValues:StringEquals", KEYS, ["a"], ABSENT, True),
    ("ForAllValues:StringNotEquals", KEYS, ["a"], ["b", "c"], True),
    ("ForAllValues:StringNotEquals", KEYS, ["a"], ["a", "c"], False),
    ("ForAllValues:StringLike", KEYS, ["t1#*"], ["t1#x", "t1#y"], True),
    ("ForAllValues:StringLike", KEYS, ["t1#*"], ["t1#x", "t2#y"], False),
    ("ForAnyValue:StringEquals", KEYS, ["a"], ["c", "a"], True),
    ("ForAnyValue:StringEquals", KEYS, ["a"], ["c"], False),
    ("ForAnyValue:StringEquals", KEYS, ["a"], ABSENT, False),
    ("ForAnyValue:StringEqualsIfExists", KEYS, ["a"], ABSENT, True),
    ("ForAnyValue:StringNotEquals", KEYS, ["a"], ["a", "b"], True),
    ("ForAnyValue:StringNotEquals", KEYS, ["a"], ["a"], False),
    ("ForAllValues:StringLikeIfExists", KEYS, ["a*"], ["b"], False),
    # Variables of the caller and of the request.
    ("StringEquals", UA, ["${aws:username}"], "alice", True),
    ("StringEquals", UA, ["${AWS:UserName}"], "alice", True),
    ("StringEquals", UA, ["${aws:PrincipalTag/Team}"], "blue", True),
    ("StringEquals", UA, ["${aws:PrincipalTag/none, 'red'}"], "red", True),
    ("StringEquals", UA, ["${aws:PrincipalTag/none}"], "", False),
    ("StringNotEquals", UA, ["${aws:PrincipalTag/none}"], "x", True),
    # A variable may make a value that is no ARN, which matches nothing.
    ("ArnLike", "aws:PrincipalArn", ["${aws:username}"], "(caller)", False),
    ("ArnLike", "aws:PrincipalArn", ["${aws:UserAgent}"], "(caller)", False),
    ("ArnLike", "aws:PrincipalArn", ["${aws:PrincipalArn}"], "(caller)", True),
    ("StringLike", "dynamodb:Select", ["${aws:UserAgent}"], "*", False),
]


@pytest.mark.parametrize("row", TABLE_OF_TRUTH, ids=str)
@pytest.mark.parametrize("effect", ["Allow", "Deny"])
def test_an_operator_compares_as_documented(effect, row):
    operator, key, wanted, given, holds = row
    condition = {operator: {key: wanted}}
    given = "arn:aws:iam::123456789012:user/alice" if given == "(caller)" else given
    facts = {} if given == ABSENT else {key: given}
    if effect == "Allow":
        decided = decision(policy({"Condition": condition}), facts=facts) == ALLOWED
    else:
        denying = policy({}, {"Effect": "Deny", "Condition": condition})
        decided = decision(denying, facts=facts) != ALLOWED
    assert decided is holds


def test_a_wildcard_in_the_value_of_a_variable_is_literal():
    likes = policy({"Condition": {"StringLike": {"dynamodb:Select": "${aws:UserAgent}"}}})
    assert decision(likes, facts={"aws:UserAgent": "*", "dynamodb:Select": "COUNT"}) != ALLOWED
    assert decision(likes, facts={"aws:UserAgent": "*", "dynamodb:Select": "*"}) == ALLOWED


def test_all_keys_and_operators_of_a_statement_must_hold():
    both = policy(
        {
            "Condition": {
                "StringEquals": {"aws:UserAgent": "a", "dynamodb:Select": "COUNT"},
                "Bool": {"aws:SecureTransport": "true"},
            }
        }
    )
    facts = {"aws:UserAgent": "a", "dynamodb:Select": "COUNT", "aws:SecureTransport": "true"}
    assert decision(both, facts=facts) == ALLOWED
    for key in facts:
        assert decision(both, facts=facts | {key: "other"}) != ALLOWED


def test_each_of_several_values_may_deny_and_all_must_allow():
    condition = {"StringEquals": {"dynamodb:ReturnValues": "NONE"}}
    facts = {"dynamodb:ReturnValues": ["NONE", "ALL_OLD"]}
    assert decision(policy({"Condition": condition}), facts=facts) != ALLOWED
    denying = policy({}, {"Effect": "Deny", "Condition": condition})
    assert decision(denying, facts=facts) != ALLOWED


def test_an_unknown_fact_denies():
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "a"}}
    facts = {"dynamodb:LeadingKeys": None}
    assert decision(policy({"Condition": condition}), facts=facts) != ALLOWED
    denying = policy({}, {"Effect": "Deny", "Condition": condition})
    assert decision(denying, facts=facts) != ALLOWED


@pytest.mark.parametrize("keys", [["dynamodb:LeadingKeys", UA], [UA, "dynamodb:LeadingKeys"]])
def test_an_unknown_fact_does_not_matter_if_another_condition_is_false(keys):
    denying = policy(
        {},
        {
            "Effect": "Deny",
            "Condition": {"ForAnyValue:StringEquals": dict.fromkeys(keys, "a")},
        },
    )
    assert decision(denying, facts={"dynamodb:LeadingKeys": None, UA: "b"}) == ALLOWED


def test_a_pattern_with_many_wildcards_is_quick():
    likes = policy({"Condition": {"StringLike": {UA: "*a" * 30 + "*b"}}})
    assert decision(likes, facts={UA: "a" * 10_000}) != ALLOWED
