"""Random PartiQL statements: each gets a success or one of DynamoDB's errors, never a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.clients.clients import WireClient
from tests.support.tables.songs import songs_table

NAMES = ("artist", "song", "album", "genre", "plays", "tags", "details", '"a b"', '"#x"', "other")
WORDS = (
    *("SELECT", "*", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "MISSING"),
    *("NULL", "ORDER BY", "DESC", "INSERT INTO", "VALUE", "UPDATE", "SET", "REMOVE", "DELETE"),
    *("RETURNING", "ALL", "OLD", "NEW", "MODIFIED", "EXISTS", "LIMIT", "GROUP BY", "LIKE", "true"),
    *("CASE", "WHEN", "THEN", "END", "CAST(", "AS", "DATE", "TIME", "UNION", "JOIN", "ON", "INTO"),
    *("=", "<>", "<", ">=", "(", ")", "[", "]", "{", "}", "<<", ">>", ",", ".", ":", ";", "?"),
    *("+", "-", "*", "||", "'a'", "''", "1", "-0.0", "1e125", "`1`", "size(", "contains(", "@"),
    *("list_append(", "set_add(", "--", "/*", "*/", '"', "'", "\n", "$songs", "$index"),
)
LITERALS = (
    *("'Acme'", "'Alpha'", "''", "'é''x'", "0", "1", "-25.5", "1e3", "true", "null", "?"),
    *("<<'new'>>", "<<1, 2>>", "<<>>", "<<1, 'a'>>", "MISSING", "1e999", "`x`"),
)
STEPS = ("", "", "", "", "", ".label", ".years[0]", "[1]", "['a b']", ".*", "[*]", "[?]")
COMPARATORS = ("=", "<>", "<", "<=", ">", ">=", "LIKE")
TYPES = ("MISSING", "NOT MISSING", "NULL", "NOT NULL", "LIST", "BAG")
FUNCTIONS = ("begins_with", "contains", "attribute_type", "attribute_exists", "f")
# Conditions that a query plan turns into ranges of keys.
KEY_CONDITIONS = (
    *("artist = 'Acme'", "artist IN ['Acme', 'Bolt']", "artist = ?", "genre = 'rock'"),
    *("song = 'Alpha'", "song > 'Beta'", "plays < 20", "album = 'One'"),
)
ORDERS = (
    *("", "", "", "", " ORDER BY song", " ORDER BY song DESC", " ORDER BY artist DESC, song"),
    *(";", " ORDER BY plays DESC", " LIMIT 1", " ORDER BY details.label"),
)
RETURNINGS = (
    *("", "", " RETURNING ALL OLD *", " RETURNING ALL NEW *"),
    *(" RETURNING MODIFIED OLD *", " RETURNING MODIFIED NEW *"),
)
SOURCES = ("$songs", "$songs", '$songs."by-album"', '$songs."by-genre"', "nowhere")
PARAMETERS = (
    *({"S": "Acme"}, {"N": "1"}, {"SS": ["new"]}, {"L": []}, {"NULL": True}, {"B": "AA=="}),
    *({"N": "x"}, {}, {"S": 1}),
)

names = st.sampled_from(NAMES)
literals = st.recursive(
    st.sampled_from(LITERALS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: "[" + ", ".join(found) + "]"),
        st.tuples(names, inner).map(lambda two: f"{{'{two[0]}': {two[1]}}}"),
    ),
    max_leaves=3,
)
paths = st.tuples(names, st.sampled_from(STEPS)).map("".join)
operands = st.one_of(
    paths,
    literals,
    paths.map("size({})".format),
    st.tuples(paths, literals).map(" + ".join),
)
calls = st.tuples(st.sampled_from(FUNCTIONS), st.lists(operands, min_size=1, max_size=2))
comparisons = st.one_of(
    st.sampled_from(KEY_CONDITIONS),
    st.tuples(operands, st.sampled_from(COMPARATORS), operands).map(" ".join),
    st.tuples(operands, operands, operands).map("{0[0]} BETWEEN {0[1]} AND {0[2]}".format),
    st.tuples(operands, st.lists(operands, max_size=3).map(", ".join)).map(
        "{0[0]} IN [{0[1]}]".format
    ),
    st.tuples(operands, st.sampled_from(TYPES)).map(" IS ".join),
    calls.map(lambda call: f"{call[0]}({', '.join(call[1])})"),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("AND", "OR")), inner).map(" ".join),
        inner.map("NOT {}".format),
        inner.map("({})".format),
    ),
    max_leaves=5,
)
wheres = st.one_of(st.just(""), conditions.map(" WHERE {}".format))
columns = st.one_of(st.just("*"), st.lists(paths, min_size=1, max_size=3).map(", ".join))
actions = st.one_of(
    st.tuples(paths, operands).map("SET {0[0]} = {0[1]}".format),
    st.tuples(paths, literals).map("SET {0[0]} = set_add({0[0]}, {0[1]})".format),
    st.tuples(paths, operands).map("SET {0[0]} = list_append({0[0]}, {0[1]})".format),
    st.tuples(paths, operands).map("SET {0[0]} = if_not_exists({0[0]}, {0[1]})".format),
    paths.map("REMOVE {}".format),
)
updates = st.lists(actions, min_size=1, max_size=3).map(" ".join)
sources = st.sampled_from(SOURCES)
orders = st.sampled_from(ORDERS)
returnings = st.sampled_from(RETURNINGS)
items = st.lists(st.tuples(names, literals).map("'{0[0]}': {0[1]}".format), max_size=4)
statements = st.one_of(
    st.tuples(columns, sources, wheres, orders).map("SELECT {0[0]} FROM {0[1]}{0[2]}{0[3]}".format),
    st.tuples(sources, updates, wheres, returnings).map("UPDATE {0[0]} {0[1]}{0[2]}{0[3]}".format),
    st.tuples(sources, wheres, updates, returnings).map("FROM {0[0]}{0[1]} {0[2]}{0[3]}".format),
    st.tuples(sources, wheres, returnings).map("DELETE FROM {0[0]}{0[1]}{0[2]}".format),
    st.tuples(sources, items.map(", ".join)).map("INSERT INTO {0[0]} VALUE {{{0[1]}}}".format),
    st.lists(st.one_of(st.sampled_from(WORDS), names, literals), max_size=12).map(" ".join),
    st.text(max_size=30),
)
parameters = st.lists(st.sampled_from(PARAMETERS), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def songs(wire: WireClient) -> Iterator[str]:
    with songs_table(wire) as name:
        yield name


def answered(wire: WireClient, operation: str, request: dict[str, Any]) -> Any:
    """The answer to a request, which may be an error, but not a server error."""
    answer = wire.send(operation, request)
    assert answer.status in (200, 400), (request, answer.body)
    if answer.status == 400:
        error = answer.json
        assert error["__type"].startswith("com.amazon"), error
        assert error.get("message") or error["__type"].endswith("SerializationException"), error
    return answer.json


@pytest.mark.differs_from_dynamodb_local("answers 500 to some")
@settings(max_examples=1500, suppress_health_check=[HealthCheck.too_slow])
@given(statements, st.none() | parameters, st.none() | st.integers(1, 4))
def test_random_statements_never_give_a_server_error(
    wire: WireClient, songs: str, text: str, values: list[Any] | None, limit: int | None
) -> None:
    request: dict[str, Any] = {"Statement": text.replace("$songs", f'"{songs}"')}
    if values is not None:
        request["Parameters"] = values
    if limit is not None:
        request["Limit"] = limit
    token = answered(wire, "ExecuteStatement", request).get("NextToken")
    if token is not None:
        answered(wire, "ExecuteStatement", request | {"NextToken": token})


@pytest.mark.differs_from_dynamodb_local("answers 500 to some")
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(statements, min_size=1, max_size=4))
def test_random_batches_never_give_a_server_error(
    wire: WireClient, songs: str, texts: list[str]
) -> None:
    request = {"Statements": [{"Statement": one.replace("$songs", f'"{songs}"')} for one in texts]}
    answered(wire, "BatchExecuteStatement", request)
