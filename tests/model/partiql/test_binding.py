"""Bound statements: literals that round-trip, and trees cached by text."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.errors import DynamoDBError, ValidationException
from dynactor.model.expressions.condition import Contains, Equal, HasType, Not, NotExists
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    UpdateStatement,
)
from dynactor.model.values import attribute_value
from tests.support.tables.bound_statement import bind

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.decimals(-1000, 1000, allow_nan=False, places=3).map(str),
    st.tuples(st.integers(1, 9), st.integers(-130, 125)).map(lambda two: f"{two[0]}e{two[1]}"),
)


def written(value: dict[str, Any]) -> str:
    """A value as a literal of a statement."""
    match value:
        case {"S": text}:
            return "'" + text.replace("'", "''") + "'"
        case {"N": text}:
            return str(text)
        case {"BOOL": truth}:
            return "TRUE" if truth else "false"
        case {"NULL": _}:
            return "null"
        case {"L": elements}:
            return "[" + ", ".join(map(written, elements)) + "]"
        case {"M": members}:
            inner = [f"{written({'S': name})}: {written(one)}" for name, one in members.items()]
            return "{" + ",".join(inner) + "}"
        case {"SS": elements}:
            return "<<" + ", ".join(written({"S": element}) for element in elements) + ">>"
        case {"NS": elements}:
            return "<<" + ",".join(elements) + ">>"
    raise AssertionError(value)


scalars = st.one_of(
    texts.map(lambda text: {"S": text}),
    numbers.filter(lambda text: float(text) != 0).map(lambda text: {"N": text}),
    st.booleans().map(lambda truth: {"BOOL": truth}),
    st.just({"NULL": True}),
    st.sets(texts, min_size=1, max_size=4).map(lambda found: {"SS": sorted(found)}),
    st.sets(st.integers(-50, 50), min_size=1, max_size=4).map(
        lambda found: {"NS": [str(one) for one in found]}
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: {"L": found}),
        st.dictionaries(texts.filter(bool), inner, max_size=3).map(lambda found: {"M": found}),
    ),
    max_leaves=8,
)


@given(values)
def test_a_literal_is_the_value_that_it_writes(value: dict[str, Any]) -> None:
    text = written(value)
    insert = bind(f"INSERT INTO abc VALUE {{'pk': 'a', 'v': {text}}}", [])
    attribute_value.check(value)
    assert isinstance(insert, InsertStatement)
    assert insert.item == {"pk": {"S": "a"}, "v": value}
    select = bind(f"SELECT * FROM abc WHERE v = {text}", [])
    assert isinstance(select, SelectStatement)
    assert select.where is not None
    assert select.where.evaluate(insert.item)


@given(st.text(max_size=40))
def test_any_text_is_bound_or_refused(text: str) -> None:
    with suppress(DynamoDBError):
        assert bind(text, [])


def test_a_parameter_and_a_literal_make_the_same_statement() -> None:
    parameters = [{"N": "1"}, {"S": "a"}]
    bound = bind("UPDATE abc SET v = v + ? WHERE pk = ? AND v < 9", parameters)
    assert bound == bind("UPDATE abc SET v = v + 1 WHERE pk = 'a' AND v < 9", [])


def test_a_cached_statement_keeps_no_parameters_of_a_request() -> None:
    text = "SELECT * FROM abc WHERE pk = ?"
    first, second = bind(text, [{"S": "a"}]), bind(text, [{"S": "b"}])
    assert isinstance(first, SelectStatement)
    assert isinstance(second, SelectStatement)
    assert first.where != second.where
    with pytest.raises(ValidationException):
        bind(text, [])


def test_names_that_look_like_placeholders_are_names() -> None:
    select = bind('SELECT "#a", ":b" FROM abc WHERE "#c".":d" = 1', [])
    assert isinstance(select, SelectStatement)
    assert select.projector is not None
    assert select.projector.names == {"#a", ":b"}
    assert select.where is not None
    assert select.where.attributes == {"#c"}
    assert select.nested == {"#c"}


@pytest.mark.parametrize(
    ("where", "node"),
    [
        ("v IS MISSING", NotExists),
        ("v IS NULL", HasType),
        ("v IS NOT NULL", Not),
        ("CONTAINS(v, 1)", Contains),
        ("contains(v, 1) = TRUE", Contains),
        ("FALSE <> contains(v, 1)", Contains),
        ("contains(v, 1) = FALSE", Not),
        ("v = NULL", Equal),
        ("v = TRUE", Equal),
    ],
)
def test_conditions_of_statements_are_bound_to_those_of_expressions(where: str, node: type) -> None:
    select = bind(f"SELECT * FROM abc WHERE {where}", [])
    assert isinstance(select, SelectStatement)
    assert select.where is not None
    assert isinstance(select.where.root, node)


def test_each_statement_has_its_returned_attributes() -> None:
    for returning, expected in (
        ("", "NONE"),
        (" RETURNING ALL OLD *", "ALL_OLD"),
        (" RETURNING ALL NEW *", "ALL_NEW"),
        (" RETURNING MODIFIED OLD *", "UPDATED_OLD"),
        (" RETURNING MODIFIED NEW *", "UPDATED_NEW"),
    ):
        update = bind(f"UPDATE abc SET v = 1 WHERE pk = 'a'{returning}", [])
        assert isinstance(update, UpdateStatement)
        assert update.return_values == expected
    delete = bind("DELETE FROM abc WHERE pk = 'a' RETURNING ALL OLD *", [])
    assert isinstance(delete, DeleteStatement)
    assert delete.returning == "ALL OLD"


def test_exists_keeps_its_select_for_transactions() -> None:
    exists = bind("EXISTS(SELECT * FROM abc WHERE pk = ? AND v = 1)", [{"S": "a"}])
    assert isinstance(exists, ExistsStatement)
    assert exists.select == bind("SELECT * FROM abc WHERE pk = 'a' AND v = 1", [])
