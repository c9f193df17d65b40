"""``dynactor policy test``: decisions, reasons, warnings and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dynactor.api.commands.policy import decide as run
from tests.support.access.tenants import ARN, POLICY

GET = {"Action": "dynamodb:GetItem", "Resource": ARN}
OWN = {"dynamodb:LeadingKeys": ["ann"]}
OTHERS = {"dynamodb:LeadingKeys": ["ann", "bob"]}


@pytest.fixture
def write(tmp_path: Path):
    def written(statements: list[dict[str, Any]], *requests: Any) -> tuple[Path, Path]:
        policy, lines = tmp_path / "policy.json", tmp_path / "requests"
        policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": statements}))
        lines.write_text("\n\n".join(map(json.dumps, requests)))
        return policy, lines

    return written


def test_decisions_have_reasons(write, capsys: pytest.CaptureFixture[str]):
    statements = [
        {**POLICY, "Effect": "Allow", "Sid": "Own"},
        {"Effect": "Deny", "Action": "dynamodb:Delete*", "Resource": "*", "Sid": "Keep"},
        {"Effect": "Allow", "Action": "*", "Resource": f"{ARN}2", "Sid": "Other"},
    ]
    requests = [
        {**GET, "Context": OWN, "Expect": "allow"},
        {**GET, "Context": OTHERS, "Expect": "deny"},
        {**GET, "Action": "dynamodb:DeleteItem", "Context": OWN, "Expect": "deny"},
    ]
    run(*write(statements, *requests), tags=("tenant=ann",))
    start = "  User: arn:aws:iam::000000000000:user/user is not authorized to perform: "
    denied = (
        f"{start}dynamodb:GetItem on resource: {ARN} because no identity-based policy allows the "
        "dynamodb:GetItem action"
    )
    explicit = (
        f"{start}dynamodb:DeleteItem on resource: {ARN} with an explicit deny in an "
        "identity-based policy"
    )
    false = "ForAllValues:StringEquals dynamodb:LeadingKeys is false"
    assert capsys.readouterr().out.splitlines() == [
        f"allow: dynamodb:GetItem on {ARN}",
        "  allow policy: Own applies",
        "  deny policy: Keep does not apply: another Action",
        "  allow policy: Other does not apply: another Resource",
        f"deny: dynamodb:GetItem on {ARN}",
        denied,
        f"  allow policy: Own does not apply: {false}",
        "  deny policy: Keep does not apply: another Action",
        "  allow policy: Other does not apply: another Resource",
        f"deny: dynamodb:DeleteItem on {ARN}",
        explicit,
        "  allow policy: Own applies",
        "  deny policy: Keep applies",
        "  allow policy: Other does not apply: another Resource",
    ]


def test_actions_on_buckets_are_decided_by_prefix_and_key(
    write, capsys: pytest.CaptureFixture[str]
):
    bucket = "arn:aws:s3:::exports"
    prefix = {"StringLike": {"s3:prefix": "mine*"}}
    statements = [
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket, "Condition": prefix},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{bucket}/mine/*"},
    ]
    listed = {"Action": "s3:ListBucket", "Resource": bucket}
    run(
        *write(
            statements,
            {**listed, "Context": {"s3:prefix": "mine-other/"}, "Expect": "allow"},
            {**listed, "Context": {"s3:prefix": "theirs/"}, "Expect": "deny"},
            {**listed, "Expect": "deny"},
            {"Action": "s3:GetObject", "Resource": f"{bucket}/mine/a", "Expect": "allow"},
            {"Action": "s3:GetObject", "Resource": f"{bucket}/mine-other/a", "Expect": "deny"},
            {"Action": "s3:PutObject", "Resource": f"{bucket}/mine/a", "Expect": "deny"},
        )
    )
    assert (
        f"s3:GetObject on resource: {bucket}/mine-other/a because no identity-based policy allows "
        "the s3:GetObject action"
    ) in capsys.readouterr().out


def test_an_unexpected_decision_sets_the_exit_code(write, capsys: pytest.CaptureFixture[str]):
    files = write([{**POLICY, "Effect": "Allow"}], {**GET, "Context": OWN, "Expect": "allow"})
    with pytest.raises(SystemExit) as ended:
        run(*files)
    assert ended.value.code == 1
    assert "deny (expected allow): dynamodb:GetItem" in capsys.readouterr().out


def test_a_policy_with_leading_keys_that_allows_scans_is_warned_of(
    write, capsys: pytest.CaptureFixture[str]
):
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "ann"}}
    risky = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*", "Condition": condition}
    run(*write([risky]))
    assert capsys.readouterr().out.startswith(
        "warning: policy: line 1 allows dynamodb:Scan, dynamodb:PartiQLSelect, dynamodb:GetRecords "
        "without leading keys"
    )


@pytest.mark.parametrize(
    ("change", "is_warned"),
    [
        ({}, True),
        ({"Action": ["dynamodb:*"], "Resource": "arn:aws:dynamodb:*:*:table/*"}, True),
        ({"NotAction": "sts:*", "Action": None}, True),
        ({"Effect": "Deny"}, False),
        ({"Action": "dynamodb:Get*"}, False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/a*"}, False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:RequestedRegion}*"}, False),
        ({"NotResource": "arn:aws:dynamodb:*:*:table/a", "Resource": None}, False),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, False),
    ],
)
def test_a_statement_that_allows_everything_is_warned_of(
    write, change: dict[str, Any], is_warned: bool, capsys: pytest.CaptureFixture[str]
):
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", **change}
    run(*write([{name: value for name, value in statement.items() if value is not None}]))
    warning = "warning: policy: line 1 allows all actions on all tables\n"
    assert capsys.readouterr().out == (warning if is_warned else "")


@pytest.mark.parametrize(
    ("statements", "request_", "message"),
    [
        ([], GET, "policy.json:1: the policy has no Statement"),
        ([POLICY | {"Effect": "Allow"}], {"Actoin": "x"}, "requests:1: Object "),
        ([POLICY | {"Effect": "Allow"}], [], "requests:1: Expected `object`"),
    ],
)
def test_a_faulty_file_is_named(
    write, statements: Any, request_: Any, message: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        run(*write(statements, request_))
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
