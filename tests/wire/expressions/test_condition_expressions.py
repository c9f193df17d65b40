"""Condition expressions: results for one item, and errors of invalid expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped
from tests.support.tables.tables import table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

# Every condition below is evaluated on this item.
ITEM: dict[str, Any] = {
    "pk": {"S": "item"},
    "s": {"S": "hello"},
    "n": {"N": "10"},
    "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}}}}},
    "l": {"L": [{"S": "zero"}, {"N": "1"}, {"L": [{"S": "inner"}]}]},
    "b": {"B": "AAEC"},
    "t": {"BOOL": True},
    "f": {"BOOL": False},
    "nil": {"NULL": True},
    "ss": {"SS": ["a", "b"]},
    "ss2": {"SS": ["b", "a"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["AA==", "AQ=="]},
    "e": {"S": ""},
    "deep": {"L": [{"M": {"set": {"SS": ["x", "y"]}}}]},
}

VALUES: dict[str, Any] = {
    ":hello": {"S": "hello"},
    ":he": {"S": "he"},
    ":lo": {"S": "lo"},
    ":z": {"S": "z"},
    ":a": {"S": "a"},
    ":empty": {"S": ""},
    ":5": {"N": "5"},
    ":9": {"N": "9"},
    ":10": {"N": "10.0"},
    ":11": {"N": "11"},
    ":1": {"N": "1"},
    ":2": {"N": "2"},
    ":3": {"N": "3"},
    ":bin": {"B": "AAE="},
    ":byte": {"B": "AQ=="},
    ":bytes": {"B": "AAEC"},
    ":true": {"BOOL": True},
    ":null": {"NULL": True},
    ":set": {"SS": ["b", "a"]},
    ":nset": {"NS": ["2", "1"]},
    ":list": {"L": [{"S": "zero"}, {"N": "1"}, {"L": [{"S": "inner"}]}]},
    ":innerlist": {"L": [{"S": "inner"}]},
    ":nested": {"L": [{"M": {"set": {"SS": ["y", "x"]}}}]},
    ":map": {"M": {"y": {"M": {"z": {"S": "deep"}}}, "x": {"N": "1.0"}}},
    ":deep": {"S": "deep"},
    ":inner": {"S": "inner"},
    ":S": {"S": "S"},
    ":N": {"S": "N"},
    ":M": {"S": "M"},
    ":L": {"S": "L"},
    ":BOOL": {"S": "BOOL"},
    ":NULL": {"S": "NULL"},
    ":SS": {"S": "SS"},
    ":B": {"S": "B"},
}


@pytest.fixture(scope="module")
def asked(wire: WireClient) -> Iterator[str]:
    """A table with the item ``ITEM``."""
    with table(wire, "pk:S") as name:
        wire("PutItem", {"TableName": name, "Item": ITEM})
        yield name


def placeholders(text: str, given: dict[str, Any]) -> dict[str, Any]:
    """The placeholders that occur in the text."""
    words = "".join(c if c.isalnum() or c in ":#_" else " " for c in text).split()
    return {name: value for name, value in given.items() if name in words}


def is_true(wire: WireClient, asked: str, condition: str, **members: Any) -> bool:
    """Evaluate the condition by an update that changes nothing."""
    request = {
        "TableName": asked,
        "Key": {"pk": ITEM["pk"]},
        "ConditionExpression": condition,
        **members,
    }
    if used := placeholders(condition, VALUES):
        request["ExpressionAttributeValues"] = used
    answer = wire.send("UpdateItem", request)
    if answer.status == 200:
        return True
    assert answer.json["__type"].endswith("#ConditionalCheckFailedException"), answer.body
    return False


@pytest.mark.parametrize(
    "condition",
    [
        "s = :hello",
        ":hello = s",
        "n = :10",
        "b = :bytes",
        "t = :true",
        "nil = :null",
        "ss = :set",
        "ss = ss2",
        "ns = :nset",
        "l = :list",
        "deep = :nested",
        "m = :map",
        "e = :empty",
        "m.x = :1",
        "m.y.z = :deep",
        "l[1] = :1",
        "l[2][0] = :inner",
        "l[2] = :innerlist",
        "s <> :z",
        "s <> :10",
        "n <> :hello",
        "nothing <> :z",
        ":z <> nothing",
        "nothing <> nothing2",
        "n < :11",
        "n <= :10",
        "n > :9",
        "n >= :10",
        "s < :z",
        "s > :he",
        "b > :bin",
        "n BETWEEN :9 AND :11",
        "n BETWEEN :10 AND :10",
        "s BETWEEN :he AND :z",
        ":10 BETWEEN n AND n",
        ":10 BETWEEN m.x AND n",
        "s IN (:hello)",
        "n IN (:1, :2, :10)",
        "s IN (:10, :hello)",
        "m.x IN (n, l[1])",
        "attribute_exists(s)",
        "attribute_exists(m.y.z)",
        "attribute_exists(l[2][0])",
        "attribute_exists(nil)",
        "attribute_not_exists(nothing)",
        "attribute_not_exists(m.nothing.x)",
        "attribute_not_exists(l[9])",
        "attribute_not_exists(s.x)",
        "attribute_type(s, :S)",
        "attribute_type(n, :N)",
        "attribute_type(m, :M)",
        "attribute_type(m.y, :M)",
        "attribute_type(l, :L)",
        "attribute_type(t, :BOOL)",
        "attribute_type(nil, :NULL)",
        "attribute_type(ss, :SS)",
        "attribute_type(b, :B)",
        "begins_with(s, :he)",
        "begins_with(s, :empty)",
        "begins_with(s, :hello)",
        "begins_with(b, :bin)",
        "contains(s, :lo)",
        "contains(ss, :a)",
        "contains(ns, :1)",
        "contains(bs, :byte)",
        "contains(b, :byte)",
        "contains(l, :1)",
        "contains(l, :innerlist)",
        "contains(:hello, s)",
        "size(s) = :5",
        "size(b) = :3",
        "size(ss) = :2",
        "size(l) = :3",
        "size(m) = :2",
        "size(:hello) = :5",
        "size(s) > size(b)",
        "size(m.y) = l[1]",
        "size(nothing) <> :1",
        "NOT s = :z",
        "NOT nothing = :z",
        "NOT (s = :z OR n = :1)",
        "NOT contains(s, :z)",
        "s = :hello AND n = :10",
        "s = :z OR n = :10",
        "s = :z AND n = :1 OR t = :true",
        "t = :true OR s = :z AND n = :1",
        "(t = :true OR s = :z) AND n = :10",
        "NOT s = :z AND n = :10",
        "not s = :z and n between :9 and :11 or s in (:z)",
        "s=:hello AND(n>=:9)",
        "(s) = (:hello)",
        "n BETWEEN :9 AND :11 AND s = :hello",
    ],
)
def test_a_condition_is_true(wire: WireClient, asked: str, condition: str):
    assert is_true(wire, asked, condition)


@pytest.mark.parametrize(
    "condition",
    [
        "s = :z",
        "s = :10",
        "nothing = :z",
        ":z = nothing",
        "nothing = nothing2",
        "nothing < :z",
        "nothing <= nothing2",
        "nothing > nothing2",
        "nothing >= nothing2",
        "n < :10",
        "n > :10",
        "n < :z",
        "s > :1",
        "t < n",
        "l = :innerlist",
        "m.y = :map",
        "ss = :a",
        "n BETWEEN :11 AND m.x",
        "nothing BETWEEN :1 AND :2",
        "s BETWEEN :1 AND :2",
        "s IN (:z, :10)",
        "nothing IN (nothing2)",
        "attribute_exists(nothing)",
        "attribute_exists(m.y.nothing)",
        "attribute_exists(l[3])",
        "attribute_exists(s[0])",
        "attribute_exists(l.x)",
        "attribute_not_exists(s)",
        "attribute_type(s, :N)",
        "attribute_type(nothing, :NULL)",
        "begins_with(s, :lo)",
        "begins_with(n, :he)",
        "begins_with(nothing, :he)",
        "contains(s, :1)",
        "contains(s, :z)",
        "contains(n, :1)",
        "contains(l, :deep)",
        "contains(m, :1)",
        "contains(nothing, :1)",
        "contains(ss, :set)",
        "size(n) = :2",
        "size(t) = :1",
        "size(nil) = :1",
        "size(nothing) = :1",
        "size(s) = :hello",
        "NOT s = :hello",
        "NOT (s = :hello AND n = :10)",
        "s = :hello AND n = :1",
        "(t = :true OR s = :z) AND n = :1",
        "NOT nothing <> :z",
    ],
)
def test_a_condition_is_false(wire: WireClient, asked: str, condition: str):
    assert not is_true(wire, asked, condition)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("#s = :hello", {"#s": "s"}),
        ("#m.#x = :1", {"#m": "m", "#x": "x"}),
        ("#l[1] = :1", {"#l": "l"}),
        ("#m.x = :1", {"#m": "m"}),
        ("#123 = :hello", {"#123": "s"}),
        ("#_ = :hello", {"#_": "s"}),
        ("attribute_not_exists(#dotted)", {"#dotted": "m.x"}),
        ("attribute_not_exists(#reserved)", {"#reserved": "SELECT"}),
        ("attribute_exists(#s) AND #s = :hello", {"#s": "s"}),
    ],
)
def test_a_placeholder_may_replace_a_name(
    wire: WireClient, asked: str, condition: str, names: dict[str, str]
):
    assert is_true(wire, asked, condition, ExpressionAttributeNames=names)


def test_a_condition_may_use_key_attributes(wire: WireClient, asked: str):
    request = {
        "TableName": asked,
        "Key": {"pk": ITEM["pk"]},
        "ConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": ITEM["pk"]},
    }
    assert wire("UpdateItem", request) == {}


def test_in_accepts_100_operands(wire: WireClient, asked: str):
    operands = ", ".join(["nothing"] * 99 + [":hello"])
    assert is_true(wire, asked, f"s IN ({operands})")


def test_an_expression_of_4096_bytes_with_300_operators_is_accepted(wire: WireClient, asked: str):
    many = " OR ".join(["s=:hello"] * 150)
    assert is_true(wire, asked, many)
    assert is_true(wire, asked, "s = :hello".ljust(4096))


REFUSED: list[Any] = [
    ("", "The expression can not be empty;"),
    (" ", 'Syntax error; token: "<EOF>", near: " "'),
    ("s", 'Syntax error; token: "<EOF>", near: "s"'),
    ("s =", 'Syntax error; token: "<EOF>", near: "="'),
    ("s = = n", 'Syntax error; token: "=", near: "= = n"'),
    ("s n", 'Syntax error; token: "n", near: "s n"'),
    ("s != n", 'Syntax error; token: "!", near: "s !="'),
    ("s == n", 'Syntax error; token: "=", near: "== n"'),
    ("s = 1", 'Syntax error; token: "1", near: "= 1"'),
    ("s = 'n'", 'Syntax error; token: "\'", near: "= \'n"'),
    ("_s = n", 'Syntax error; token: "_", near: "_s"'),
    ("0s = n", 'Syntax error; token: "0", near: "0s"'),
    ("s IN ()", 'Syntax error; token: ")", near: "()"'),
    ("l[x] = n", 'Syntax error; token: "x", near: "[x]"'),
    ("l[-1] = n", 'Syntax error; token: "-", near: "[-1"'),
    ("m..x = n", 'Syntax error; token: ".", near: "..x"'),
    ("m. = n", 'Syntax error; token: "=", near: ". = n"'),
    ("s = n AND", 'Syntax error; token: "<EOF>", near: "AND"'),
    ("NOT", 'Syntax error; token: "<EOF>", near: "NOT"'),
    ("s = n OR OR n = s", 'Syntax error; token: "OR", near: "OR OR n"'),
    ("((s = n))", "The expression has redundant parentheses;"),
    ("(((s = n)))", "The expression has redundant parentheses;"),
    ("t = :true AND ((s = n))", "The expression has redundant parentheses;"),
    (
        "s = :nothing",
        (
            "An expression attribute value used in expression is not defined; "
            "attribute value: :nothing"
        ),
    ),
    (
        "#nothing = s",
        (
            "An expression attribute name used in the document path is not defined; "
            "attribute name: #nothing"
        ),
    ),
    ("comment = s", "Attribute name is a reserved keyword; reserved keyword: comment"),
    ("s = SELECT", "Attribute name is a reserved keyword; reserved keyword: SELECT"),
    ("m.Abort = s", "Attribute name is a reserved keyword; reserved keyword: Abort"),
    ("foo(s)", "Invalid function name; function: foo"),
    ("Attribute_Exists(s)", "Invalid function name; function: Attribute_Exists"),
    ("BEGINS_WITH(s, :he)", "Invalid function name; function: BEGINS_WITH"),
    (
        "if_not_exists(s, n) = n",
        "The function is not allowed in a condition expression; function: if_not_exists",
    ),
    (
        "size(s)",
        "The function is not allowed to be used this way in an expression; function: size",
    ),
    (
        "size(:hello)",
        "The function is not allowed to be used this way in an expression; function: size",
    ),
    (
        "s = attribute_exists(n)",
        (
            "The function is not allowed to be used this way in an expression; "
            "function: attribute_exists"
        ),
    ),
    (
        "attribute_exists(s) = n",
        (
            "The function is not allowed to be used this way in an expression; "
            "function: attribute_exists"
        ),
    ),
    (
        "attribute_exists(:hello)",
        "Operator or function requires a document path; operator or function: attribute_exists",
    ),
    (
        "attribute_not_exists(:hello)",
        "Operator or function requires a document path; operator or function: attribute_not_exists",
    ),
    (
        "attribute_exists(s, n)",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "attribute_exists, number of operands: 2"
        ),
    ),
    (
        "begins_with(s)",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "begins_with, number of operands: 1"
        ),
    ),
    (
        "contains(s)",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "contains, number of operands: 1"
        ),
    ),
    (
        "size(s, n) = :1",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "size, number of operands: 2"
        ),
    ),
    (
        "attribute_type(s, :1)",
        (
            "Incorrect operand type for operator or function; operator or function: "
            "attribute_type, "
            "operand type: N"
        ),
    ),
    (
        "begins_with(s, :1)",
        (
            "Incorrect operand type for operator or function; operator or function: begins_with, "
            "operand type: N"
        ),
    ),
    (
        "begins_with(:1, s)",
        (
            "Incorrect operand type for operator or function; operator or function: begins_with, "
            "operand type: N"
        ),
    ),
    (
        "size(size(s)) > n",
        (
            "Incorrect operand type for operator or function; operator or function: size, "
            "operand type: N"
        ),
    ),
    (
        "size(:1) = n",
        (
            "Incorrect operand type for operator or function; operator or function: size, "
            "operand type: N"
        ),
    ),
    (
        "s < :true",
        (
            "Incorrect operand type for operator or function; operator or function: <, "
            "operand type: BOOL"
        ),
    ),
    (
        "s >= :null",
        (
            "Incorrect operand type for operator or function; operator or function: >=, "
            "operand type: NULL"
        ),
    ),
    (
        "s <= :set",
        (
            "Incorrect operand type for operator or function; operator or function: <=, "
            "operand type: SS"
        ),
    ),
    *[
        (
            condition,
            (
                "Incorrect operand type for operator or function; operator or function: BETWEEN, "
                "operand type: L"
            ),
        )
        for condition in ("s BETWEEN :list AND s", "s BETWEEN s AND :list")
    ],
    (
        "s BETWEEN :list AND :innerlist",
        (
            "Incorrect operand type for operator or function; operator or function: BETWEEN, "
            "operand type: L"
        ),
    ),
    (
        "n BETWEEN :11 AND :9",
        (
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:11}, upper bound operand: AttributeValue: "
            "{N:9}"
        ),
    ),
    (
        "n BETWEEN :1 AND :z",
        (
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:z}"
        ),
    ),
    (
        "contains(s, s)",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: contains, first operand: [s]"
        ),
    ),
    (
        "begins_with(s, s)",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: begins_with, first operand: [s]"
        ),
    ),
    *[
        (
            f"s {operator} s",
            (
                "The first operand must be distinct from the remaining operands for this "
                "operator or "
                f"function; operator: {operator}, first operand: [s]"
            ),
        )
        for operator in ("=", "<>", "<", "<=", ">", ">=")
    ],
    (
        "m.x = m.x",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: =, first operand: [m, x]"
        ),
    ),
    (
        "l[0] = l[0]",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: =, first operand: [l, [0]]"
        ),
    ),
    (
        "s IN (s)",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: IN, first operand: [s]"
        ),
    ),
    (
        "s BETWEEN s AND s",
        (
            "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: BETWEEN, first operand: [s]"
        ),
    ),
    (
        f"s IN ({', '.join(['n'] * 101)})",
        "The IN operator is provided with too many operands; number of operands: 101",
    ),
    (
        "s = n".ljust(4097),
        "Expression size has exceeded the maximum allowed size; expression size: 4097",
    ),
    (
        " OR ".join(["s=n"] * 151),
        "The expression contains too many operators; operator count: 301",
    ),
    (
        "l[99999999999] = s",
        "List index is not within the allowable range; index: [99999999999]",
    ),
]


@pytest.mark.parametrize(
    ("condition", "message"), REFUSED, ids=[str(case[0])[:40].strip() for case in REFUSED]
)
def test_a_condition_is_refused(wire: WireClient, asked: str, condition: str, message: str):
    request: dict[str, Any] = {
        "TableName": asked,
        "Key": {"pk": ITEM["pk"]},
        "ConditionExpression": condition,
    }
    if used := placeholders(condition, VALUES):
        request["ExpressionAttributeValues"] = used
    assert wire.refused("DeleteItem", request) == (
        "ValidationException",
        enveloped(f"Invalid ConditionExpression: {message}"),
    )


def test_errors_of_a_filter_name_the_filter_expression(wire: WireClient, asked: str):
    assert wire.refused("Scan", {"TableName": asked, "FilterExpression": "((s = n))"}) == (
        "ValidationException",
        "Invalid FilterExpression: The expression has redundant parentheses;",
    )


def test_an_unknown_type_name_is_refused(wire: WireClient, asked: str):
    request = {
        "TableName": asked,
        "Key": {"pk": ITEM["pk"]},
        "ConditionExpression": "attribute_type(s, :type)",
        "ExpressionAttributeValues": {":type": {"S": "STRING"}},
    }
    message = wire.refused("DeleteItem", request).message
    assert message is not None
    assert message.startswith(
        enveloped(
            "Invalid ConditionExpression: Invalid attribute type name found; type: STRING, "
            "valid types:"
        )
    )
