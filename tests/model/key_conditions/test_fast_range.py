"""The fast path for key conditions: the same range as the slow path, or None."""

from __future__ import annotations

import copy
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynactor.model.errors import DynamoDBError
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.key_conditions import fast_range, key_range
from dynactor.model.key_conditions.key_condition import bind_key_condition
from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys.key import KeyAttribute, KeySchema
from tests.model.keys.test_fast_key import schemas, usual_values, values

names = st.sampled_from(["pk", "sk", "#p", "#s", "other", "#o", "pk.a", "size"])
placeholders = st.sampled_from([":a", ":b", ":c"])
comparisons = st.builds(
    "{} {} {}".format, names, st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]), placeholders
)
terms = st.one_of(
    comparisons,
    st.builds("{1} = {0}".format, names, placeholders),
    st.builds("{1} < {0}".format, names, placeholders),
    st.builds("{} BETWEEN {} AND {}".format, names, placeholders, placeholders),
    st.builds("begins_with({}, {})".format, names, placeholders),
    st.builds("NOT {}".format, comparisons),
    st.builds("attribute_exists({})".format, names),
    st.just("pk = :a"),
    st.just("#p = :a"),
)
texts = st.one_of(
    terms,
    st.builds("{} AND {}".format, terms, terms),
    st.builds("{} AND ({})".format, terms, terms),
    st.builds("{} OR {}".format, terms, terms),
    st.builds("{} AND {} AND {}".format, terms, terms, terms),
    st.just(""),
    st.just("pk ="),
)
given_names = st.none() | st.dictionaries(
    st.sampled_from(["#p", "#s", "#o", "p"]), st.sampled_from(["pk", "sk", "other", ""])
)
given_values = st.none() | st.dictionaries(
    st.sampled_from([":a", ":b", ":c", ":d", "a"]), usual_values | values
)


def slowly(
    text: str, of_names: dict[str, str] | None, of_values: dict[str, Any] | None, schema: KeySchema
) -> KeyRange | None:
    """The range that the slow path finds with syntax trees; None for a refused condition."""
    try:
        bound = Placeholders(of_names, copy.deepcopy(of_values))
        found = bind_key_condition(text, bound)
        bound.check_all_used()
        return key_range.selected_range(found.on(schema))
    except DynamoDBError:
        return None


@given(texts, given_names, given_values, schemas())
@example("pk = :a", {}, {":a": {"S": "x"}}, KeySchema((KeyAttribute("pk", "S"),)))
@example(
    "pk = :a", None, {":a": {"S": "x"}, ":b": {"S": ""}}, KeySchema((KeyAttribute("pk", "S"),))
)
@example("pk = :a", {"#s": "sk"}, {":a": {"S": "x"}}, KeySchema((KeyAttribute("pk", "S"),)))
@example(
    "#p = :a", {"#p": "pk", "#s": "sk"}, {":a": {"S": "x"}}, KeySchema((KeyAttribute("pk", "S"),))
)
@example(
    "pk = :a AND #p = :b",
    {"#p": "pk"},
    {":a": {"N": "1"}, ":b": {"S": "x"}},
    KeySchema((KeyAttribute("pk", "S"),)),
)
def test_a_range_equals_that_of_the_slow_path(text, of_names, of_values, schema):
    before = copy.deepcopy(of_values)
    found = fast_range.partition_range(text, of_names, of_values, schema)
    assert of_values == before
    if found is not None:
        assert found == slowly(text, of_names, of_values, schema)


CONTENTS = {
    "S": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
    "N": st.integers(-(10**30), 10**30).map(str),
    "B": st.binary(min_size=1, max_size=9).map(lambda raw: b64encode(raw).decode()),
}
OF_SORT = [
    "{} = :b",
    "{} < :b",
    "{} <= :b",
    "{} > :b",
    "{} >= :b",
    ":b > {}",
    "begins_with({}, :b)",
    "{} BETWEEN :b AND :c",
]


@pytest.mark.parametrize("of_sort", [*OF_SORT, None])
@given(schema=schemas(), data=st.data())
def test_the_fast_path_decides_every_valid_condition_of_a_query(of_sort, schema, data):
    if of_sort is not None and not schema.sort:
        return
    of_values = {":a": {schema.partition[0].type: data.draw(CONTENTS[schema.partition[0].type])}}
    of_names = None
    text = "pk = :a"
    if of_sort is not None:
        kind = schema.sort[0].type
        for name in ":b", ":c":
            if name in of_sort:
                of_values[name] = {kind: data.draw(CONTENTS[kind])}
        if data.draw(st.booleans()):
            of_names = {"#s": "sk"}
        sort = of_sort.format("#s" if of_names else "sk")
        text = data.draw(st.sampled_from([f"{text} AND {sort}", f"{sort} AND {text}"]))
    found = fast_range.partition_range(text, of_names, of_values, schema)
    assert found == slowly(text, of_names, of_values, schema)


def test_the_fast_path_leaves_keys_of_several_attributes_to_the_slow_path():
    schema = KeySchema((KeyAttribute("pk", "S"), KeyAttribute("other", "S")))
    assert fast_range.partition_range("pk = :a", None, {":a": {"S": "x"}}, schema) is None


@pytest.mark.parametrize("placeholder", [":a", ":b"])
def test_the_fast_path_leaves_values_longer_than_keys_to_the_slow_path(placeholder):
    schema = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
    of_values = {":a": {"S": "x"}, ":b": {"S": "x"}}
    assert fast_range.partition_range("pk = :a AND sk = :b", None, of_values, schema) is not None
    # All values of a request together have at most 2 MB.
    of_values[placeholder] = {"S": "x" * 2**21}
    assert fast_range.partition_range("pk = :a AND sk = :b", None, of_values, schema) is None
    assert slowly("pk = :a AND sk = :b", None, of_values, schema) is None
