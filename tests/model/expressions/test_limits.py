"""The limits of expressions: size, operators, operands of IN, depth."""

from __future__ import annotations

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import parse_projection
from dynactor.model.expressions.update import parse_update


def condition(text: str) -> Condition:
    values = {":v": {"N": "1"}} if ":v" in text else None
    return parse_condition(text, Placeholders(None, values), kind="ConditionExpression")


def error_of(text: str) -> str:
    with pytest.raises(ValidationException) as caught:
        condition(text)
    return caught.value.message.removeprefix("Invalid ConditionExpression: ")


TOO_MANY = "The expression contains too many operators; operator count: 301"
TOO_DEEP = "The document path has too many nesting levels; nesting levels:"
REDUNDANT = "The expression has redundant parentheses;"


def test_an_empty_expression_is_refused() -> None:
    assert error_of("") == "The expression can not be empty;"
    assert error_of("  ") == 'Syntax error; token: "<EOF>", near: "  "'


@pytest.mark.parametrize(
    ("text", "near"),
    [("a = ", "= "), (" a", "a"), ("a\n=\t=", "=\t="), ("a = :v and \n", "and \n")],
)
def test_a_syntax_error_shows_spaces_as_they_are_written(text: str, near: str) -> None:
    assert f'near: "{near}"' in error_of(text)


def test_an_expression_has_at_most_4096_characters() -> None:
    assert condition("attribute_exists(" + "a" * 4078 + ")").evaluate({"a" * 4078: {"S": ""}})
    assert error_of("attribute_exists(" + "a" * 4079 + ")") == (
        "Expression size has exceeded the maximum allowed size; expression size: 4097"
    )
    for parse in (parse_update, parse_projection):
        with pytest.raises(ValidationException) as caught:
            parse("a" * 4097, Placeholders(None, None))
        assert caught.value.message.endswith(
            "Expression: Expression size has exceeded the maximum allowed size;"
        )


@pytest.mark.parametrize(
    ("clause", "joined"),
    [
        ("a=:v", 150),
        ("a.b[1]=:v", 150),
        ("a in (:v,:v)", 150),
        ("a between :v and :v", 150),
        ("attribute_exists(a)", 150),
        ("size(a)=:v", 100),
    ],
)
def test_comparisons_functions_and_connectives_count_as_operators(clause: str, joined: int) -> None:
    assert condition(" or ".join([clause] * joined)) is not None
    assert error_of(" or ".join([clause] * (joined + 1))) == TOO_MANY


def test_not_counts_as_an_operator() -> None:
    assert condition("not " * 299 + "a = :v").evaluate({})
    assert error_of("not " * 300 + "a = :v") == TOO_MANY
    assert error_of("not " * 1000 + "a = :v") == TOO_MANY


def test_sums_count_as_operators_and_set_does_not() -> None:
    values = {":v": {"N": "1"}}
    text = "SET " + ",".join(f"a{n}=:v" for n in range(400))
    assert len(parse_update(text, Placeholders(None, values)).actions) == 400
    text = "SET " + ",".join(f"a{n}=a+:v" for n in range(301))
    with pytest.raises(ValidationException) as caught:
        parse_update(text, Placeholders(None, values))
    assert caught.value.message == f"Invalid UpdateExpression: {TOO_MANY}"


def test_in_takes_100_operands() -> None:
    assert condition(f"a in ({','.join([':v'] * 100)})").evaluate({"a": {"N": "1"}})
    assert error_of(f"a in ({','.join([':v'] * 101)})") == (
        "The IN operator is provided with too many operands; number of operands: 101"
    )


def test_a_condition_nested_as_deep_as_its_operators_allow_is_evaluated() -> None:
    depth = 149
    nested = condition("(a=:v and " * depth + "a=:v" + ")" * depth)
    assert nested.evaluate({"a": {"N": "1"}})
    assert not nested.evaluate({"a": {"N": "2"}})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(" * 4000, 'Syntax error; token: "<EOF>", near: "("'),
        ("(" * 2000 + "a=:v" + ")" * 2000, REDUNDANT),
        ("a=" + "(" * 2000 + ":v" + ")" * 2000, REDUNDANT),
        ("(" * 400 + "a=:v" + " or a=:v)" * 400, TOO_MANY),
        ("size(" * 600 + "a" + ")" * 600 + "=:v", TOO_MANY),
        ("f(" * 2000, TOO_MANY),
        ("a" + ".a" * 1500 + "=:v", f"{TOO_DEEP} 1501"),
        ("a" + "[0]" * 1300 + "=:v", f"{TOO_DEEP} 1301"),
    ],
)
def test_deeply_nested_text_does_not_exhaust_the_stack(text: str, error: str) -> None:
    assert error_of(text) == error


def test_if_not_exists_may_nest_deep() -> None:
    depth = 240
    text = "SET a=" + "if_not_exists(b," * depth + ":v" + ")" * depth
    update = parse_update(text, Placeholders(None, {":v": {"N": "1"}}))
    assert update.apply(None, {}).item == {"a": {"N": "1"}}


def test_many_paths_below_one_attribute_are_processed_in_linear_time() -> None:
    # 2 ms with a tree of paths, 0.5 s if each path is compared with each other.
    paths = ",".join(f"a.b{n}" for n in range(600))
    item = {"a": {"M": {"b7": {"S": "x"}, "c": {"S": "y"}}}}
    assert parse_projection(paths, Placeholders(None, None)).project(item) == {
        "a": {"M": {"b7": {"S": "x"}}}
    }
