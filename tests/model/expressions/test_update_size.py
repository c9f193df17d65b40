"""The size of an UpdateExpression that counts toward UpdateItem's limit."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.expressions.update_size import check_expression_size, expression_bytes
from dynactor.model.limits import ITEM_SIZE_BYTES

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
        ("SET a = :text, b = :text", 3 + 2 * (19 + 1 + 5)),
        ("SET m.inside[10].x = :one", 3 + 19 + (1 + 4 + 6 + 4 + 2 + 4 + 1) + 2),
        ("SET a = bcdef", 3 + 1 + (1 + 14 + 5)),
        ("SET a = b[12].c", 3 + 1 + (1 + 14 + 1 + 14 + 2 + 14 + 1)),
        ("SET a = b + :one", 3 + 1 + 34 + (1 + 14 + 1) + (19 + 2)),
        ("SET a = :one - b", 3 + 1 + 37 + (1 + 14 + 1) + (19 + 2)),
        ("SET a = list_append(b, :list)", 3 + 1 + 37 + (1 + 14 + 1) + (19 + 3 + 1 + 2)),
        ("SET a = if_not_exists(bcd, :text)", 3 + 1 + 39 + (1 + 14 + 3) + (19 + 5)),
        (
            "SET a = if_not_exists(b, :one) + :one",
            3 + 1 + 34 + (39 + (1 + 14 + 1) + (19 + 2)) + (19 + 2),
        ),
        ("ADD n :one", 3 + 19 + 1 + 2),
        ("ADD s :set", 3 + 19 + 1 + 3),
        ("REMOVE a, bc[1]", 3 + (1 + 1) + (1 + 2 + 4 + 1)),
        ("DELETE s :set", 3 + 1 + 1),
    ],
)
def test_the_size_of_an_expression_is_that_of_its_actions(text: str, size_bytes: int) -> None:
    values = {name: dict(value) for name, value in VALUES.items() if name in text}
    names = {"#name": "é"} if "#name" in text else None
    placeholders = Placeholders(names, values or None)
    assert expression_bytes(parse_update(text, placeholders)) == size_bytes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SET b = :pad", None),
        (f"SET {','.join(f'a{at}=:pad' for at in range(400))}", None),
        (f"SET {','.join(f'a{at}=:pad' for at in range(400))} REMOVE #n", {"#n": "n" * 9}),
        (f"REMOVE {','.join(f'#n.a{at}' for at in range(400))}", {"#n": "n"}),
    ],
    ids=["one value", "a value used often", "a name", "a name used often"],
)
def test_an_expression_is_refused_from_one_byte_too_many(
    text: str, names: dict[str, str] | None
) -> None:
    def check(pad_bytes: int) -> int:
        pad = "x" * pad_bytes
        values = {":pad": {"S": pad}} if ":pad" in text else None
        of_names = names and {"#n": names["#n"] if values else pad}
        placeholders = Placeholders(of_names, values)
        update = parse_update(text, placeholders)
        check_expression_size(text, update, placeholders.size_bytes)
        return expression_bytes(update)

    uses = text.count(":pad") or text.count("#n")
    others = check(1) - uses
    largest = (ITEM_SIZE_BYTES - others) // uses
    assert check(largest) == others + uses * largest
    with pytest.raises(ValidationException, match="Item size to update has exceeded"):
        check(largest + 1)
