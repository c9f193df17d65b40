"""Update expressions: effects on an item, and errors of invalid expressions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

BEFORE: dict[str, Any] = {
    "s": {"S": "text"},
    "n": {"N": "10"},
    "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}}}}},
    "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["AA=="]},
    "huge": {"N": "1e50"},
}

VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":zero": {"N": "0"},
    ":big": {"N": "9.9e125"},
    ":text": {"S": "new"},
    ":list": {"L": [{"S": "x"}]},
    ":map": {"M": {"k": {"S": "v"}}},
    ":ss": {"SS": ["b", "c"]},
    ":sa": {"SS": ["a", "b"]},
    ":ns": {"NS": ["2.0", "3"]},
    ":bs": {"BS": ["AA==", "AQ=="]},
    ":bool": {"BOOL": True},
}


def placeholders(text: str) -> dict[str, Any]:
    words = "".join(c if c.isalnum() or c in ":#_" else " " for c in text).split()
    return {name: value for name, value in VALUES.items() if name in words}


def update_request(table: str, pk: str, expression: str, **members: Any) -> dict[str, Any]:
    request = {"TableName": table, "Key": {"pk": {"S": pk}}, "UpdateExpression": expression}
    if used := placeholders(expression):
        request["ExpressionAttributeValues"] = used
    return request | members


def updated(
    wire: WireClient, table: str, expression: str, before: dict[str, Any], **members: Any
) -> dict[str, Any]:
    """Put an item, update it, and return the new item without its key."""
    pk = unique_name("pk")
    wire("PutItem", {"TableName": table, "Item": {"pk": {"S": pk}, **before}})
    wire("UpdateItem", update_request(table, pk, expression, **members))
    item: dict[str, Any] = wire("GetItem", {"TableName": table, "Key": {"pk": {"S": pk}}})["Item"]
    assert item.pop("pk") == {"S": pk}
    return item


@pytest.mark.parametrize(
    ("expression", "changed"),
    [
        ("SET fresh = :text", {"fresh": {"S": "new"}}),
        ("SET s = :one", {"s": {"N": "1"}}),
        ("SET s = n", {"s": {"N": "10"}}),
        ("SET s = n, n = s", {"s": {"N": "10"}, "n": {"S": "text"}}),
        ("SET s = m.y", {"s": {"M": {"z": {"S": "deep"}}}}),
        ("SET s = l[2]", {"s": {"N": "2"}}),
        ("SET n = n + :one", {"n": {"N": "11"}}),
        ("SET n = :one - n", {"n": {"N": "-9"}}),
        ("SET n = n - n", {"n": {"N": "0"}}),
        ("SET n = m.x + l[1]", {"n": {"N": "2"}}),
        ("SET n = (n + :one)", {"n": {"N": "11"}}),
        ("SET m.x = :two", {"m": {"M": {"x": {"N": "2"}, "y": {"M": {"z": {"S": "deep"}}}}}}),
        (
            "SET m.y.w = :one",
            {"m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}, "w": {"N": "1"}}}}}},
        ),
        ("SET m = :map", {"m": {"M": {"k": {"S": "v"}}}}),
        ("SET l[1] = :text", {"l": {"L": [{"N": "0"}, {"S": "new"}, {"N": "2"}]}}),
        ("SET l[3] = :text", {"l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}, {"S": "new"}]}}),
        ("SET l[99] = :text", {"l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}, {"S": "new"}]}}),
        (
            "SET l[50] = :one, l[40] = :two",
            {"l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}, {"N": "2"}, {"N": "1"}]}},
        ),
        ("SET l[0] = l[2], l[2] = l[0]", {"l": {"L": [{"N": "2"}, {"N": "1"}, {"N": "0"}]}}),
        (
            "SET l = list_append(l, :list)",
            {"l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}, {"S": "x"}]}},
        ),
        (
            "SET l = list_append(:list, l)",
            {"l": {"L": [{"S": "x"}, {"N": "0"}, {"N": "1"}, {"N": "2"}]}},
        ),
        ("SET w = list_append(:list, :list)", {"w": {"L": [{"S": "x"}, {"S": "x"}]}}),
        (
            "SET w = list_append(if_not_exists(w, :list), :list)",
            {"w": {"L": [{"S": "x"}, {"S": "x"}]}},
        ),
        ("SET s = if_not_exists(s, :one)", {}),
        ("SET w = if_not_exists(w, :one)", {"w": {"N": "1"}}),
        ("SET w = if_not_exists(s, :one)", {"w": {"S": "text"}}),
        ("SET w = if_not_exists(w, if_not_exists(v, :one))", {"w": {"N": "1"}}),
        ("SET w = if_not_exists(w, :zero) + :one", {"w": {"N": "1"}}),
        ("SET w = if_not_exists(m.nothing, :one)", {"w": {"N": "1"}}),
        ("SET huge = huge + huge", {"huge": {"N": "2" + "0" * 50}}),
        ("REMOVE s", {"s": None}),
        ("REMOVE s, n", {"s": None, "n": None}),
        ("REMOVE nothing", {}),
        ("REMOVE m.x", {"m": {"M": {"y": {"M": {"z": {"S": "deep"}}}}}}),
        ("REMOVE m.nothing", {}),
        ("REMOVE m.y.z", {"m": {"M": {"x": {"N": "1"}, "y": {"M": {}}}}}),
        ("REMOVE l[0]", {"l": {"L": [{"N": "1"}, {"N": "2"}]}}),
        ("REMOVE l[0], l[1]", {"l": {"L": [{"N": "2"}]}}),
        ("REMOVE l[2], l[0]", {"l": {"L": [{"N": "1"}]}}),
        ("REMOVE l[0], l[1], l[2]", {"l": {"L": []}}),
        ("REMOVE l[9]", {}),
        ("REMOVE l[0] SET l[1] = :text", {"l": {"L": [{"S": "new"}, {"N": "2"}]}}),
        ("ADD n :one", {"n": {"N": "11"}}),
        ("ADD n :zero", {}),
        ("ADD fresh :one", {"fresh": {"N": "1"}}),
        ("ADD m.x :one", {"m": {"M": {"x": {"N": "2"}, "y": {"M": {"z": {"S": "deep"}}}}}}),
        (
            "ADD m.w :one",
            {"m": {"M": {"x": {"N": "1"}, "w": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}}}}}},
        ),
        ("ADD l[1] :one", {"l": {"L": [{"N": "0"}, {"N": "2"}, {"N": "2"}]}}),
        ("ADD ss :ss", {"ss": {"SS": ["a", "b", "c"]}}),
        ("ADD ns :ns", {"ns": {"NS": ["1", "2", "3"]}}),
        ("ADD bs :bs", {"bs": {"BS": ["AA==", "AQ=="]}}),
        ("ADD fresh :ss", {"fresh": {"SS": ["b", "c"]}}),
        ("DELETE ss :ss", {"ss": {"SS": ["a"]}}),
        ("DELETE ss :sa", {"ss": None}),
        ("DELETE ns :ns", {"ns": {"NS": ["1"]}}),
        ("DELETE bs :bs", {"bs": None}),
        ("DELETE nothing :ss", {}),
        (
            "set fresh = :one remove s add n :one delete ss :ss",
            {"fresh": {"N": "1"}, "s": None, "n": {"N": "11"}, "ss": {"SS": ["a"]}},
        ),
        (
            "DELETE ss :ss ADD n :one REMOVE s SET fresh = :one",
            {"fresh": {"N": "1"}, "s": None, "n": {"N": "11"}, "ss": {"SS": ["a"]}},
        ),
        ("SET s = n REMOVE n", {"s": {"N": "10"}, "n": None}),
        ("SET #n = :one", {"a.b": {"N": "1"}}),
    ],
)
def test_an_update_changes_an_item(
    wire: WireClient, simple: str, expression: str, changed: dict[str, Any]
):
    members = {"ExpressionAttributeNames": {"#n": "a.b"}} if "#n" in expression else {}
    expected = {name: value for name, value in (BEFORE | changed).items() if value is not None}
    item = updated(wire, simple, expression, BEFORE, **members)
    expected["huge"] = expected["huge"] if "huge" in changed else {"N": "1" + "0" * 50}
    assert {name: sorted_sets(value) for name, value in item.items()} == expected


def sorted_sets(value: Any) -> Any:
    """A copy with sorted sets, because the order of a set's members is unspecified."""
    ((type_name, content),) = value.items()
    return {type_name: sorted(content)} if type_name in ("SS", "NS", "BS") else value


def test_removing_the_last_attribute_leaves_the_key(wire: WireClient, simple: str):
    assert updated(wire, simple, "REMOVE s", {"s": {"S": "a"}}) == {}


def test_an_update_of_a_missing_item_creates_it(wire: WireClient, simple: str, pk: str):
    wire("UpdateItem", update_request(simple, pk, "SET a = :one ADD b :two"))
    item = wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]
    assert item == {"pk": {"S": pk}, "a": {"N": "1"}, "b": {"N": "2"}}


@differs_from_dynamodb_local("it creates the item")
@pytest.mark.parametrize("expression", ["REMOVE a", "REMOVE a.b", "DELETE a :ss", "REMOVE l[0]"])
def test_a_remove_or_delete_alone_creates_no_item(
    wire: WireClient, simple: str, pk: str, expression: str
):
    assert wire("UpdateItem", update_request(simple, pk, expression)) == {}
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {}


def test_an_update_without_any_expression_creates_the_item(wire: WireClient, simple: str, pk: str):
    wire("UpdateItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})
    item = wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]
    assert item == {"pk": {"S": pk}}


def test_set_from_a_missing_item_is_refused(wire: WireClient, simple: str, pk: str):
    assert wire.refused("UpdateItem", update_request(simple, pk, "SET a = a + :one")) == (
        "ValidationException",
        "The provided expression refers to an attribute that does not exist in the item",
    )


SYNTAX: list[tuple[str, str]] = [
    ("", "The expression can not be empty;"),
    (" ", 'Syntax error; token: "<EOF>", near: " "'),
    ("SET", 'Syntax error; token: "<EOF>", near: "SET"'),
    ("SET s", 'Syntax error; token: "<EOF>", near: "s"'),
    ("SET s = ", 'Syntax error; token: "<EOF>", near: "= "'),
    ("SET s = :one,", 'Syntax error; token: "<EOF>", near: ","'),
    ("SET s = :one, REMOVE n", 'Syntax error; token: "REMOVE", near: ", REMOVE n"'),
    ("SET s = :one n = :one", 'Syntax error; token: "n", near: ":one n ="'),
    ("SET s = :one + :one + :one", 'Syntax error; token: "+", near: ":one + :one"'),
    ("SET s = -:one", 'Syntax error; token: "-", near: "= -:one"'),
    ("SET s += :one", 'Syntax error; token: "+", near: "s +="'),
    ("SET s = :one AND n = :one", 'Syntax error; token: "AND", near: ":one AND n"'),
    ("SET :one = s", 'Syntax error; token: ":one", near: "SET :one ="'),
    ("s = :one", 'Syntax error; token: "s", near: "s ="'),
    ("FOO s = :one", 'Syntax error; token: "FOO", near: "FOO s"'),
    ("REMOVE :one", 'Syntax error; token: ":one", near: "REMOVE :one"'),
    ("REMOVE s n", 'Syntax error; token: "n", near: "s n"'),
    ("ADD n", 'Syntax error; token: "<EOF>", near: "n"'),
    ("ADD n s", 'Syntax error; token: "s", near: "n s"'),
    ("ADD n :one + :one", 'Syntax error; token: "+", near: ":one + :one"'),
    ("DELETE ss", 'Syntax error; token: "<EOF>", near: "ss"'),
    (
        "SET s = :one SET n = :one",
        'The "SET" section can only be used once in an update expression;',
    ),
    ("REMOVE s REMOVE n", 'The "REMOVE" section can only be used once in an update expression;'),
    (
        "ADD n :one ADD l :one",
        'The "ADD" section can only be used once in an update expression;',
    ),
    ("SET comment = :one", "Attribute name is a reserved keyword; reserved keyword: comment"),
    (
        "SET s = :nothing",
        (
            "An expression attribute value used in expression is not defined; "
            "attribute value: :nothing"
        ),
    ),
    (
        "SET m.#nothing = :one",
        (
            "An expression attribute name used in the document path is not defined; "
            "attribute name: #nothing"
        ),
    ),
    *[
        (
            expression,
            (
                f"Two document paths {how} with each other; must remove or rewrite one of these "
                f"paths; path one: {one}, path two: {two}"
            ),
        )
        for expression, how, one, two in (
            ("SET s = :one, s = :two", "overlap", "[s]", "[s]"),
            ("SET m.x = :one, m.x = :two", "overlap", "[m, x]", "[m, x]"),
            ("SET m = :one, m.x = :two", "overlap", "[m]", "[m, x]"),
            ("SET m.x = :one REMOVE m", "overlap", "[m, x]", "[m]"),
            ("SET l[0] = :one, l[0] = :two", "overlap", "[l, [0]]", "[l, [0]]"),
            ("REMOVE l[0], l[0]", "overlap", "[l, [0]]", "[l, [0]]"),
            ("ADD n :one SET n = :two", "overlap", "[n]", "[n]"),
            ("SET m.x = :one, m[0] = :two", "conflict", "[m, x]", "[m, [0]]"),
        )
    ],
    ("SET s = foo(n)", "Invalid function name; function: foo"),
    ("SET s = IF_NOT_EXISTS(n, :one)", "Invalid function name; function: IF_NOT_EXISTS"),
    ("SET s = List_Append(l, :list)", "Invalid function name; function: List_Append"),
    (
        "SET s = size(l)",
        "The function is not allowed in an update expression; function: size",
    ),
    (
        "SET s = attribute_exists(l)",
        "The function is not allowed in an update expression; function: attribute_exists",
    ),
    (
        "SET l = list_append(list_append(l, :list), :list)",
        "The function is not allowed to be used this way in an expression; function: list_append",
    ),
    (
        "SET s = if_not_exists(:one, s)",
        "Operator or function requires a document path; operator or function: if_not_exists",
    ),
    (
        "SET s = if_not_exists(s)",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "if_not_exists, number of operands: 1"
        ),
    ),
    (
        "SET l = list_append(l, :list, :list)",
        (
            "Incorrect number of operands for operator or function; operator or function: "
            "list_append, number of operands: 3"
        ),
    ),
    (
        "SET l = list_append(l, :text)",
        (
            "Incorrect operand type for operator or function; operator or function: list_append, "
            "operand type: S"
        ),
    ),
    (
        "SET l = list_append(:one, l)",
        (
            "Incorrect operand type for operator or function; operator or function: list_append, "
            "operand type: N"
        ),
    ),
    (
        "SET n = n + :text",
        "Incorrect operand type for operator or function; operator or function: +, operand type: S",
    ),
    (
        "SET n = :bool - n",
        (
            "Incorrect operand type for operator or function; operator or function: -, "
            "operand type: BOOL"
        ),
    ),
    (
        "ADD n :text",
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "ADD l :list",
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: LIST, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "ADD n :map",
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: MAP, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "DELETE ss :text",
        (
            "Incorrect operand type for operator or function; operator: DELETE, operand type: "
            "STRING, "
            "typeSet: ALLOWED_FOR_DELETE_OPERAND"
        ),
    ),
    (
        "DELETE ns :one",
        (
            "Incorrect operand type for operator or function; operator: DELETE, operand type: "
            "NUMBER, "
            "typeSet: ALLOWED_FOR_DELETE_OPERAND"
        ),
    ),
    (
        "SET l[99999999999] = :one",
        "List index is not within the allowable range; index: [99999999999]",
    ),
]


@pytest.mark.parametrize(("expression", "message"), SYNTAX, ids=[case[0][:40] for case in SYNTAX])
def test_an_invalid_update_expression_is_refused(
    wire: WireClient, simple: str, expression: str, message: str
):
    refusal = wire.refused("UpdateItem", update_request(simple, "refused", expression))
    assert refusal == (
        "ValidationException",
        enveloped(f"Invalid UpdateExpression: {message}"),
    )


def test_an_expression_over_4096_bytes_is_refused(wire: WireClient, simple: str):
    request = update_request(simple, "refused", "SET s = :one".ljust(4097))
    refusal = wire.refused("UpdateItem", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith(
        enveloped(
            "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;"
        )
    )


MISSING = "The provided expression refers to an attribute that does not exist in the item"
BAD_PATH = "The document path provided in the update expression is invalid for update"
BAD_TYPE = "An operand in the update expression has an incorrect data type"
KEY_PART = (
    "One or more parameter values were invalid: Cannot update attribute pk. "
    "This attribute is part of the key"
)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("SET w = nothing", MISSING),
        # The second operand must exist even if the first does.
        ("SET w = if_not_exists(s, nothing)", MISSING),
        ("SET w = if_not_exists(s, m.nothing)", MISSING),
        ("SET w = if_not_exists(s, if_not_exists(nothing, nothing2))", MISSING),
        ("SET w = m.nothing", MISSING),
        ("SET w = l[9]", MISSING),
        ("SET w = nothing + :one", MISSING),
        ("SET w = list_append(nothing, :list)", MISSING),
        ("SET w = if_not_exists(nothing, nothing2)", MISSING),
        ("SET nothing.x = :one", BAD_PATH),
        ("SET m.nothing.x = :one", BAD_PATH),
        ("SET m.x.w = :one", BAD_PATH),
        ("SET s[0] = :one", BAD_PATH),
        ("SET l.x = :one", BAD_PATH),
        ("SET l[0].x = :one", BAD_PATH),
        ("SET m[0] = :one", BAD_PATH),
        ("SET l[9].x = :one", BAD_PATH),
        ("REMOVE nothing.x", BAD_PATH),
        ("REMOVE m.nothing.x", BAD_PATH),
        ("REMOVE s.x", BAD_PATH),
        ("REMOVE l.x", BAD_PATH),
        ("REMOVE m[0]", BAD_PATH),
        ("ADD nothing.x :one", BAD_PATH),
        ("SET n = n + s", BAD_TYPE),
        ("SET n = s - n", BAD_TYPE),
        ("SET w = list_append(s, :list)", BAD_TYPE),
        ("SET w = list_append(ss, l)", BAD_TYPE),
        ("ADD s :one", BAD_TYPE),
        ("ADD n :ss", BAD_TYPE),
        ("ADD ss :ns", BAD_TYPE),
        ("ADD ss :one", BAD_TYPE),
        ("DELETE s :ss", BAD_TYPE),
        ("DELETE ns :ss", BAD_TYPE),
        ("SET pk = :text", KEY_PART),
        ("SET pk = pk", KEY_PART),
        ("SET pk.x = :text", KEY_PART),
        ("REMOVE pk", KEY_PART),
        ("ADD pk :one", KEY_PART),
        ("DELETE pk :ss", KEY_PART),
        *[
            pytest.param(
                expression,
                "Number overflow. Attempting to store a number with magnitude larger than "
                "supported range",
                marks=differs_from_dynamodb_local("other words"),
            )
            for expression in (
                # Results with more than 38 digits.
                "SET n = huge + :one",
                "SET n = huge - :one",
                "SET n = :one - huge",
                "ADD huge :one",
                # A result out of range.
                "SET n = :big + :big",
            )
        ],
    ],
)
def test_an_update_that_the_item_does_not_allow_is_refused_and_changes_nothing(
    lanes: LanesClient, simple: str, pk: str, expression: str, message: str
):
    lanes("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, **BEFORE}})
    before = lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})
    request = update_request(simple, pk, expression)
    assert lanes.refused("UpdateItem", request) == ("ValidationException", message)
    assert lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == before
