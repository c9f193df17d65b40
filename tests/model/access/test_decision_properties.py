"""Properties of decisions on generated policies."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dynactor.model.access.decision import Grants
from dynactor.model.access.policy import Policy
from tests.support.access.deciding import ALICE, ALLOWED, TABLE, decision, policy

TEXTS = st.sampled_from(["a", "b", "a*", "?", "${aws:username}", "${aws:UserAgent}", "alice"])
CONDITIONS = st.dictionaries(
    st.sampled_from(
        [
            "StringEquals",
            "StringNotLikeIfExists",
            "ForAllValues:StringLike",
            "ForAnyValue:StringNotEquals",
            "ForAllValues:StringEqualsIfExists",
        ]
    ),
    st.dictionaries(
        st.sampled_from(["aws:UserAgent", "dynamodb:Select", "aws:RequestTag/x"]),
        st.lists(TEXTS, min_size=1, max_size=2),
        min_size=1,
        max_size=2,
    ),
    max_size=2,
)
STATEMENTS = st.fixed_dictionaries(
    {
        "Effect": st.sampled_from(["Allow", "Allow", "Deny"]),
        "Action": st.sampled_from(["dynamodb:*", "dynamodb:Get*", "dynamodb:Query"]),
        "Resource": st.sampled_from(
            ["*", TABLE, "arn:aws:dynamodb:*:*:table/${aws:UserAgent}*", f"{TABLE}/index/*"]
        ),
        "Condition": CONDITIONS,
    }
)
POLICIES = st.lists(st.lists(STATEMENTS, min_size=1, max_size=3), max_size=3)
FACTS = st.dictionaries(
    st.sampled_from(["aws:UserAgent", "dynamodb:Select", "aws:RequestTag/x"]),
    st.sampled_from(["a", "b", "alice", "GameScores", None, ["a", "b"]]),
)
ACTIONS = st.sampled_from(["dynamodb:GetItem", "dynamodb:Query"])


def compiled(policies: list[list[dict[str, object]]]) -> list[Policy]:
    return [policy(*statements) for statements in policies]


@settings(max_examples=60)
@given(POLICIES, STATEMENTS, ACTIONS, FACTS)
def test_adding_a_deny_never_allows(policies, statement, action, facts):
    before = decision(Grants(ALICE, compiled(policies)), action, facts=facts)
    more = [*policies, [{**statement, "Effect": "Deny"}]]
    after = decision(Grants(ALICE, compiled(more)), action, facts=facts)
    assert before == ALLOWED or after != ALLOWED


@settings(max_examples=60)
@given(POLICIES, STATEMENTS, ACTIONS, FACTS)
def test_adding_an_allow_never_denies(policies, statement, action, facts):
    before = decision(Grants(ALICE, compiled(policies)), action, facts=facts)
    more = [*policies, [{**statement, "Effect": "Allow"}]]
    after = decision(Grants(ALICE, compiled(more)), action, facts=facts)
    assert before != ALLOWED or after == ALLOWED


@settings(max_examples=60)
@given(POLICIES, ACTIONS, FACTS, st.randoms(use_true_random=False))
def test_the_order_of_policies_and_statements_never_matters(policies, action, facts, random):
    before = decision(Grants(ALICE, compiled(policies)), action, facts=facts)
    shuffled = [random.sample(statements, len(statements)) for statements in policies]
    random.shuffle(shuffled)
    assert decision(Grants(ALICE, compiled(shuffled)), action, facts=facts) == before


@settings(max_examples=60)
@given(POLICIES, POLICIES, ACTIONS, FACTS)
def test_a_session_policy_never_allows_more(policies, of_session, action, facts):
    identity = compiled(policies)
    without = decision(Grants(ALICE, identity), action, facts=facts)
    within = decision(Grants(ALICE, identity, compiled(of_session)), action, facts=facts)
    assert without == ALLOWED or within != ALLOWED
