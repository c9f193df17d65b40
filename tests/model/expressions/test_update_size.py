"""The size of an UpdateExpression that counts toward UpdateItem's limit."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.expressions.update_size import expression_bytes

VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":text": {"S": "é123"},
    ":list": {"L": [{"S": "ab"}]},
    ":set": {"SS": ["ab", "c"]},
}


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("SET b = :text", 3 + 19 + 1 + 5),
        ("SET a = :one, bc = :text", 3 + (19 + 1 + 2) + (19 + 2 + 5)),
        ("SET #name = :text", 3 + 19 + 2 + 5),
        ("SET m.inside[3].x = :one", 3 + 19 + 1 + 6 + 1 + 2),
        ("SET a = bcdef", 3 + 19 + 1 + 5),
        ("SET a = b + :one", 3 + 19 + 1 + 1 + 2),
        ("SET a = :one - b", 3 + 19 + 1 + 1 + 2),
        ("SET a = list_append(b, :list)", 3 + 19 + 1 + 1 + (3 + 1 + 2)),
        ("SET a = if_not_exists(bcd, :text)", 3 + 19 + 1 + 3 + 5),
        ("ADD n :one", 3 + 19 + 1 + 2),
        ("ADD s :set", 3 + 19 + 1 + 3),
        ("REMOVE a, b", 3),
        ("DELETE s :set", 3),
    ],
)
def test_the_size_of_an_expression_is_that_of_its_sets_and_adds(text: str, size_bytes: int) -> None:
    values = {name: dict(value) for name, value in VALUES.items() if name in text}
    names = {"#name": "é"} if "#name" in text else None
    placeholders = Placeholders(names, values or None)
    assert expression_bytes(parse_update(text, placeholders)) == size_bytes
