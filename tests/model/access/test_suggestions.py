"""The suggested policy allows what was recorded, and nothing else."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.access.action_table import ACTIONS
from dynactor.model.access.policy import parse_policy
from dynactor.model.access.suggestion import POLICY_CHARACTERS, RecordedAction, suggested
from tests.support.access.deciding import ALLOWED, TABLE, decision

START = TABLE.removesuffix("GameScores")
NAMES = sorted(f"dynamodb:{name}" for name, action in ACTIONS.items() if action.resources)
KEYS = st.sampled_from(["ann", "bob", "ann*", "?", "${aws:username}", "$", ""])
PAIRS = st.tuples(
    st.sampled_from(NAMES[::7]), st.sampled_from(["a", "b", "a*", "?", "a/index/b", "${*}"])
)
RECORDED = st.dictionaries(PAIRS, st.none() | st.frozensets(KEYS, min_size=1), min_size=1)


@given(RECORDED, PAIRS, KEYS)
def test_nothing_else_is_allowed(
    recorded: dict[tuple[str, str], frozenset[str] | None], other: tuple[str, str], key: str
):
    actions = [RecordedAction(name, START + rest, keys) for (name, rest), keys in recorded.items()]
    suggestion = suggested(actions)
    assert suggestion.notes == ()
    found = parse_policy(json.dumps(suggestion.policy), "suggested")
    for (name, rest), keys in recorded.items():
        facts = {} if keys is None else {"dynamodb:LeadingKeys": sorted(keys)}
        assert decision(found, name, START + rest, facts) == ALLOWED
        # A request without leading keys, such as a Scan, is another request.
        assert (decision(found, name, START + rest) == ALLOWED) is (keys is None)
    wanted = recorded.get(other, frozenset())
    is_allowed = wanted is None or key in wanted
    facts = {"dynamodb:LeadingKeys": [key]}
    assert (decision(found, other[0], START + other[1], facts) == ALLOWED) is is_allowed


def test_equal_statements_are_joined():
    suggestion = suggested(
        RecordedAction(f"dynamodb:{name}", START + rest)
        for name, rest in (("PutItem", "b"), ("GetItem", "b"), ("GetItem", "a"), ("PutItem", "a"))
    )
    assert suggestion.policy["Statement"] == [
        {
            "Effect": "Allow",
            "Action": ["dynamodb:GetItem", "dynamodb:PutItem"],
            "Resource": [f"{START}a", f"{START}b"],
        }
    ]


def test_each_wildcard_has_a_reason():
    suggestion = suggested(
        [
            RecordedAction("dynamodb:ListTables", f"{START}*"),
            RecordedAction("dynamodb:GetItem", f"{START}*", is_pattern=True),
        ]
    )
    resources = [one["Resource"] for one in suggestion.policy["Statement"]]
    assert resources == [["*"], [f"{START}*"]]
    assert suggestion.notes == (
        "The Resource of dynamodb:ListTables is *, because it has no resources",
        "The Resource of dynamodb:GetItem has a wildcard, because it was on many resources",
    )


def test_a_policy_that_is_too_long_for_aws_has_a_note():
    actions = [RecordedAction("dynamodb:GetItem", f"{START}table{n}") for n in range(200)]
    (note,) = suggested(actions).notes
    assert note.endswith(f"characters: AWS allows {POLICY_CHARACTERS:,}")
