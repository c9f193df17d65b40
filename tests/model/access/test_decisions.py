"""Which policies allow: a table of truth, principals, and AWS's documented examples.

Sources: IAM User Guide, "Policy evaluation logic"; DynamoDB Developer Guide, "Using IAM policy
conditions for fine-grained access control" and "IAM security policies with PartiQL for DynamoDB".
"""

from __future__ import annotations

import pytest

from dynactor.model.access.decision import Denial, Grants, denial_text
from dynactor.model.access.principal import role_session
from tests.support.access.deciding import ACCOUNT, ALICE, ALLOWED, TABLE, decision, policy

SILENT = {"Action": "dynamodb:DeleteTable"}
POLICIES = {
    "allow": [{}],
    "deny": [{"Effect": "Deny"}, {}],
    "nothing": [SILENT],
}

# The policies of the identity, the resource and the session, and the decision.
TABLE_OF_TRUTH = [
    ("allow", None, None, ALLOWED),
    ("deny", None, None, "identity-based deny"),
    ("nothing", None, None, "identity-based does not allow"),
    ("allow", "nothing", None, ALLOWED),
    ("nothing", "allow", None, ALLOWED),
    ("allow", "allow", None, ALLOWED),
    ("nothing", "nothing", None, "identity-based does not allow"),
    ("deny", "allow", None, "identity-based deny"),
    ("allow", "deny", None, "resource-based deny"),
    ("nothing", "deny", None, "resource-based deny"),
    ("deny", "deny", None, "identity-based deny"),
    ("allow", None, "allow", ALLOWED),
    ("allow", None, "nothing", "session does not allow"),
    ("allow", None, "deny", "session deny"),
    ("nothing", None, "allow", "identity-based does not allow"),
    ("nothing", None, "nothing", "session does not allow"),
    ("deny", None, "allow", "identity-based deny"),
    ("deny", None, "deny", "identity-based deny"),
    ("nothing", "allow", "allow", ALLOWED),
    ("nothing", "allow", "nothing", "session does not allow"),
    ("nothing", "allow", "deny", "session deny"),
    ("allow", "deny", "allow", "resource-based deny"),
    ("allow", "nothing", "allow", ALLOWED),
    ("allow", "nothing", "nothing", "session does not allow"),
    ("nothing", "nothing", "allow", "identity-based does not allow"),
]


def of_resource(says: str):
    statements = [{**statement, "Principal": "*"} for statement in POLICIES[says]]
    return policy(*statements, kind="resource")


@pytest.mark.parametrize(("identity", "resource", "session", "expected"), TABLE_OF_TRUTH)
def test_policies_of_all_types_are_evaluated_together(identity, resource, session, expected):
    grants = Grants(
        ALICE,
        [policy(*POLICIES[identity])],
        None if session is None else [policy(*POLICIES[session], kind="session")],
    )
    attached = None if resource is None else of_resource(resource)
    assert decision(grants, resource_policy=attached) == expected


def test_a_caller_without_policies_may_do_nothing():
    assert decision(Grants(ALICE, [])) == "identity-based does not allow"


SESSION = role_session("reader", "bob", ACCOUNT, {})


@pytest.mark.parametrize(
    ("principal", "allows_user", "allows_session", "denies_user"),
    [
        ("*", True, True, True),
        ({"AWS": "*"}, True, True, True),
        ({"AWS": ALICE.arn}, True, False, True),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:role/reader"}, False, True, False),
        ({"AWS": SESSION.arn}, False, True, False),
        # An account leaves the decision to the policies of its users.
        ({"AWS": ACCOUNT}, False, False, True),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, False, False, True),
        ({"AWS": "999999999999"}, False, False, False),
        ({"AWS": ["arn:aws:iam::999999999999:user/alice", ALICE.arn]}, True, False, True),
    ],
)
def test_the_principal_of_a_resource_policy_names_callers(
    principal, allows_user, allows_session, denies_user
):
    allowing = policy({"Principal": principal}, kind="resource")
    assert (decision(Grants(ALICE, []), resource_policy=allowing) == ALLOWED) is allows_user
    assert (decision(Grants(SESSION, []), resource_policy=allowing) == ALLOWED) is allows_session
    denying = policy({"Effect": "Deny", "Principal": principal}, kind="resource")
    everything = Grants(ALICE, [policy({})])
    assert (decision(everything, resource_policy=denying) != ALLOWED) is denies_user


def test_a_resource_policy_that_names_a_session_is_not_restricted_by_its_policy():
    grants = Grants(SESSION, [], [policy(SILENT, kind="session")])
    of_role = policy({"Principal": {"AWS": SESSION.principal_arn}}, kind="resource")
    assert decision(grants, resource_policy=of_role) == "session does not allow"
    of_session = policy({"Principal": {"AWS": SESSION.arn}}, kind="resource")
    assert decision(grants, resource_policy=of_session) == ALLOWED


@pytest.mark.parametrize(
    ("statement", "action", "resource", "allows"),
    [
        ({"Action": "dynamodb:Get*"}, "dynamodb:GetItem", TABLE, True),
        ({"Action": "DYNAMODB:getitem"}, "dynamodb:GetItem", TABLE, True),
        ({"Action": "dynamodb:*Item"}, "dynamodb:Query", TABLE, False),
        ({"Action": ["dynamodb:?can", "s3:*"]}, "dynamodb:Scan", TABLE, True),
        ({"NotAction": "dynamodb:Delete*"}, "dynamodb:GetItem", TABLE, True),
        ({"NotAction": "dynamodb:Delete*"}, "dynamodb:DeleteItem", TABLE, False),
        ({"Resource": TABLE}, "dynamodb:GetItem", TABLE, True),
        ({"Resource": TABLE}, "dynamodb:Query", f"{TABLE}/index/ByTitle", False),
        ({"Resource": f"{TABLE}/index/*"}, "dynamodb:Query", f"{TABLE}/index/ByTitle", True),
        ({"Resource": f"{TABLE}/*"}, "dynamodb:GetRecords", f"{TABLE}/stream/2024:1", True),
        ({"Resource": "arn:aws:dynamodb:*:*:table/Game*"}, "dynamodb:GetItem", TABLE, True),
        ({"Resource": "arn:aws:dynamodb:eu-*:*:table/*"}, "dynamodb:GetItem", TABLE, False),
        # A wildcard does not match beyond its field.
        ({"Resource": "arn:aws:*:table/GameScores:*:*"}, "dynamodb:GetItem", TABLE, False),
        ({"NotResource": TABLE}, "dynamodb:GetItem", TABLE, False),
        ({"NotResource": f"{TABLE}2"}, "dynamodb:GetItem", TABLE, True),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:username}-*"}, "dynamodb:GetItem",
         TABLE.replace("GameScores", "alice-notes"), True),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:username}-*"}, "dynamodb:GetItem",
         TABLE.replace("GameScores", "bob-notes"), False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/none}*"}, "dynamodb:GetItem",
         TABLE, False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:UserAgent}"}, "dynamodb:GetItem",
         TABLE, True),
        ({"NotResource": "arn:aws:dynamodb:*:*:table/${aws:UserAgent}"}, "dynamodb:GetItem",
         TABLE, False),
        ({"NotResource": "arn:aws:dynamodb:*:*:table/${aws:RequestTag/x}"}, "dynamodb:GetItem",
         TABLE, True),
    ],
)  # fmt: skip
def test_a_statement_is_about_its_actions_and_resources(statement, action, resource, allows):
    facts = {"aws:UserAgent": "GameScores"}
    assert (decision(policy(statement), action, resource, facts) == ALLOWED) is allows


def test_messages_are_those_of_aws():
    start = f"User: {ALICE.arn} is not authorized to perform: dynamodb:Scan on resource: {TABLE} "
    texts = {
        Denial("identity-based", False): "because no identity-based policy allows the "
        "dynamodb:Scan action",
        Denial("session", False): "because no session policy allows the dynamodb:Scan action",
        Denial("identity-based", True): "with an explicit deny in an identity-based policy",
        Denial("resource-based", True): "with an explicit deny in a resource-based policy",
        Denial("session", True): "with an explicit deny in a session policy",
    }
    for denial, text in texts.items():
        assert denial_text(ALICE.arn, "dynamodb:Scan", TABLE, denial) == start + text


# -- AWS's examples ---------------------------------------------------------------------------


def test_example_of_leading_keys_and_attributes():
    """Developer Guide: a player reads and updates only their own items, and some attributes."""
    example = policy(
        {
            "Action": [
                "dynamodb:GetItem",
                "dynamodb:BatchGetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                "dynamodb:BatchWriteItem",
            ],
            "Resource": TABLE,
            "Condition": {
                "ForAllValues:StringEquals": {
                    "dynamodb:LeadingKeys": ["${aws:username}"],
                    "dynamodb:Attributes": ["UserId", "GameTitle", "Wins", "Losses"],
                },
                "StringEqualsIfExists": {
                    "dynamodb:Select": "SPECIFIC_ATTRIBUTES",
                    "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"],
                },
            },
        }
    )
    own = {"dynamodb:LeadingKeys": ["alice"], "dynamodb:Attributes": ["UserId", "Wins"]}
    select = {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}
    assert decision(example, "dynamodb:Query", facts=own | select) == ALLOWED
    assert decision(example, "dynamodb:UpdateItem", facts=own) == ALLOWED
    assert decision(example, "dynamodb:Scan", facts=own | select) != ALLOWED
    for change in (
        {"dynamodb:LeadingKeys": ["bob"]},
        {"dynamodb:LeadingKeys": ["alice", "bob"]},
        {"dynamodb:Attributes": ["UserId", "TopScore"]},
        {"dynamodb:Select": "ALL_ATTRIBUTES"},
    ):
        assert decision(example, "dynamodb:Query", facts=own | select | change) != ALLOWED
    assert (
        decision(example, "dynamodb:UpdateItem", facts=own | {"dynamodb:ReturnValues": "ALL_OLD"})
        != ALLOWED
    )


def test_example_of_hidden_attributes():
    """Developer Guide: prevent updates on certain attributes."""
    example = policy(
        {
            "Action": "dynamodb:UpdateItem",
            "Resource": TABLE,
            "Condition": {
                "ForAllValues:StringNotLike": {"dynamodb:Attributes": ["FreeGames*", "Bio"]},
                "StringEquals": {"dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]},
            },
        }
    )
    facts = {"dynamodb:ReturnValues": "NONE", "dynamodb:Attributes": ["UserId", "Wins"]}
    assert decision(example, "dynamodb:UpdateItem", facts=facts) == ALLOWED
    hidden = facts | {"dynamodb:Attributes": ["UserId", "FreeGamesLeft"]}
    assert decision(example, "dynamodb:UpdateItem", facts=hidden) != ALLOWED


def test_example_of_statements_without_full_scans():
    """Developer Guide: deny full table scans by PartiQL, and allow other SELECTs."""
    example = policy(
        {
            "Effect": "Deny",
            "Action": "dynamodb:PartiQLSelect",
            "Resource": TABLE,
            "Condition": {
                "Bool": {"dynamodb:FullTableScan": ["true"]},
            },
        },
        {"Action": "dynamodb:PartiQLSelect", "Resource": [TABLE, f"{TABLE}/index/*"]},
    )
    action = "dynamodb:PartiQLSelect"
    assert decision(example, action, facts={"dynamodb:FullTableScan": "false"}) == ALLOWED
    assert decision(example, action, facts={"dynamodb:FullTableScan": "true"}) != ALLOWED


def test_example_of_transactions_only():
    """Developer Guide: deny statements outside transactions, and allow transactions."""
    key = "dynamodb:EnclosingOperation"
    example = policy(
        {
            "Effect": "Deny",
            "Action": "dynamodb:PartiQL*",
            "Condition": {"StringEquals": {key: ["ExecuteStatement"]}},
        },
        {
            "Action": "dynamodb:PartiQL*",
            "Condition": {"StringEquals": {key: ["ExecuteTransaction"]}},
        },
    )
    action = "dynamodb:PartiQLInsert"
    assert decision(example, action, facts={key: "ExecuteTransaction"}) == ALLOWED
    assert decision(example, action, facts={key: "ExecuteStatement"}) == "identity-based deny"
    assert decision(example, action, facts={key: "BatchExecuteStatement"}) != ALLOWED


def test_example_of_a_source_address():
    """IAM User Guide: deny access from outside of two networks."""
    example = policy(
        {},
        {
            "Effect": "Deny",
            "Condition": {
                "NotIpAddress": {"aws:SourceIp": ["192.0.2.0/24", "203.0.113.0/24"]},
            },
        },
    )
    assert decision(example, facts={"aws:SourceIp": "192.0.2.7"}) == ALLOWED
    assert decision(example, facts={"aws:SourceIp": "10.0.0.1"}) == "identity-based deny"


def test_example_of_tags():
    """IAM User Guide: attribute-based access, the tag of the caller equals the resource's."""
    example = policy(
        {
            "Condition": {
                "StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"},
            },
        }
    )
    assert decision(example, facts={"aws:ResourceTag/team": "blue"}) == ALLOWED
    assert decision(example, facts={"aws:ResourceTag/team": "red"}) != ALLOWED
    assert decision(example) != ALLOWED
