"""Policy documents are parsed strictly; errors name the line."""

from __future__ import annotations

import json

import pytest

from dynactor.model.access.document import PolicyError, parse_json
from dynactor.model.access.policy import parse_policy

ALLOW = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}


def refusal(statement: object, kind: str = "identity", **more: object) -> str:
    """The error of a policy with one statement, which starts in line 4."""
    document = {"Version": "2012-10-17", "Statement": [statement], **more}
    with pytest.raises(PolicyError) as refused:
        parse_policy(json.dumps(document, indent=1), "test", kind)
    return str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Sed": "x"}, "line 8: Sed is not an element"),
        ({"Effect": "allow"}, "line 5: Effect must be Allow or Deny"),
        ({"Action": "GetItem"}, "line 6: 'GetItem' is not an action: give SERVICE:ACTION"),
        ({"Action": "dynamodb:GetItems"}, "line 6: dynamodb:GetItems is not an action of Dyn"),
        ({"Action": []}, "line 4: Action has no value"),
        ({"Resource": "table/a"}, "line 7: 'table/a' is neither * nor an ARN of six fields"),
        ({"Resource": "arn:aws:dynamodb:*:${aws:x}:table/a"}, "line 7: ${aws:x} is not a variable"),
        ({"NotAction": "s3:*"}, "line 4: a statement needs Action or NotAction, and not both"),
        ({"Principal": "*"}, "line 4: a policy of kind identity has no Principal"),
        (
            {"Condition": {"StringIs": {"aws:username": "a"}}},
            "line 9: StringIs is not a condition operator",
        ),
        (
            {"Condition": {"ForSomeValues:StringEquals": {"aws:username": "a"}}},
            "line 9: ForSomeValues:StringEquals is not a condition operator",
        ),
        (
            {"Condition": {"StringEquals": {"aws:usrname": "a"}}},
            "line 10: aws:usrname is not a condition key",
        ),
        (
            {"Condition": {"StringEquals": {"dynamodb:LeadingKeys": "a"}}},
            "line 10: dynamodb:LeadingKeys may have several values: write ForAllValues:",
        ),
        (
            {"Condition": {"NumericLessThan": {"aws:EpochTime": "soon"}}},
            "line 10: NumericLessThan of aws:EpochTime: 'soon' is not a number",
        ),
        (
            {"Condition": {"DateLessThan": {"aws:CurrentTime": "2024-13-01"}}},
            "line 10: DateLessThan of aws:CurrentTime: '2024-13-01' is not a time",
        ),
        (
            {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/40"}}},
            "line 10: IpAddress of aws:SourceIp: '10.0.0.0/40' is not an IP address",
        ),
        (
            {"Condition": {"ArnLike": {"aws:PrincipalArn": "arn:aws:*:user/a"}}},
            "line 10: ArnLike of aws:PrincipalArn: 'arn:aws:*:user/a' is neither *",
        ),
        (
            {"Condition": {"Bool": {"aws:SecureTransport": "yes"}}},
            "line 10: Bool of aws:SecureTransport: 'yes' is neither true nor false",
        ),
        (
            {"Condition": {"StringEquals": {"aws:UserAgent": "${aws:username"}}},
            "line 10: the variable in '${aws:username' has no closing brace",
        ),
        (
            {"Condition": {"StringEquals": {"aws:UserAgent": "${dynamodb:LeadingKeys}"}}},
            "line 10: ${dynamodb:leadingkeys} may have several values",
        ),
        *(
            (
                {"Condition": {"StringEquals": {"aws:UserAgent": f"${{{variable}}}"}}},
                f"line 10: ${{{variable}}} is not a variable",
            )
            for variable in ("", " ", ", 'a'", "aws:username,", "aws:username, a", "aws:x, 'a''b'")
        ),
    ],
)
def test_a_mistake_refuses_the_policy_with_its_line(change, message):
    assert refusal({**ALLOW, **change}).startswith(message)


def test_a_variable_with_many_spaces_is_parsed_in_linear_time():
    assert "is not a variable" in refusal({**ALLOW, "Resource": f"${{a{' ' * 200_000}b,}}"})


def test_a_resource_policy_needs_a_principal():
    assert refusal(ALLOW, "resource") == "line 4: a resource policy needs a Principal"
    assert "is not a principal" in refusal({**ALLOW, "Principal": {"AWS": "bob"}}, "resource")
    assert 'must be "*" or' in refusal({**ALLOW, "Principal": {"Service": "x"}}, "resource")


def test_the_elements_of_the_document_are_checked():
    assert "Version must be 2012-10-17" in refusal(ALLOW, Version="2013-10-17")
    assert "Statements is not an element of a policy" in refusal(ALLOW, Statements=[])
    assert "the policy has no Statement" in refusal(ALLOW, Statement=[])
    twice = [{**ALLOW, "Sid": "A"}, {**ALLOW, "Sid": "A"}]
    assert "the Sid A is given twice" in refusal(ALLOW, Statement=twice)


def test_a_single_statement_needs_no_list():
    parsed = parse_policy(json.dumps({"Statement": ALLOW}), "test")
    assert len(parsed.statements) == 1


def test_actions_of_other_services_are_accepted():
    statement = {**ALLOW, "Action": ["s3:Get*", "sts:*"]}
    assert len(parse_policy(json.dumps({"Statement": statement}), "test").statements) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: this is not JSON: a text is expected here"),
        ('{"a": 1\n "b": 2}', "line 2: this is not JSON: a comma or } is expected here"),
        ('{"a": 1,\n\n"a": 2}', "line 3: a is given twice"),
        ("[1, 2] 3", "line 1: the document ends here, but more text follows"),
        ("[1,\n nope]", "line 2: this is not JSON: a value is expected here"),
        ('["\\x"]', "line 1: this text is not valid JSON"),
        ("[" * 30, "line 1: the document is nested too deeply"),
        ('{"a" 1}', "line 1: this is not JSON: a colon is expected after a"),
    ],
)
def test_a_text_that_is_not_json_is_refused_with_its_line(text, message):
    with pytest.raises(PolicyError) as refused:
        parse_json(text)
    assert str(refused.value) == message


def test_values_keep_their_lines():
    read = parse_json('{"a":\n [true, null,\n -1.5e3, "\\u00e9"]}')
    assert isinstance(read.value, dict)
    elements = read.value["a"].value
    assert isinstance(elements, tuple)
    assert [(one.value, one.line) for one in elements] == [
        (True, 2),
        (None, 2),
        ("-1.5e3", 3),
        ("é", 3),
    ]
