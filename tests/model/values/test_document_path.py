from __future__ import annotations

from copy import deepcopy

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.values import document_path
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.document_path import Path
from dynactor.model.values.item import Item

ONE: AttributeValue = {"N": "1"}
ITEM: Item = {
    "a": ONE,
    "m": {"M": {"x": ONE, "y": {"L": [{"S": "s"}, {"M": {"z": {"S": "deep"}}}]}}},
    "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a",), ONE),
        (("m", "x"), ONE),
        (("m", "y", 1, "z"), {"S": "deep"}),
        (("l", 2), {"N": "2"}),
        (("l", 3), None),
        (("zz",), None),
        (("zz", "x", 1), None),
        (("a", "x"), None),
        (("a", 0), None),
        (("m", 0), None),
        (("l", "x"), None),
        (("m", "y", 0, "z"), None),
    ],
)
def test_get_returns_the_value_at_a_path(path: Path, value: AttributeValue | None) -> None:
    assert document_path.get(ITEM, path) == value


def test_a_projection_keeps_the_order_of_lists_and_makes_no_empty_containers() -> None:
    wanted = document_path.branches(
        [("l", 2), ("m", "zz"), ("l", 0), ("l", 9), ("zz", "x"), ("a", "x")]
    )
    assert document_path.project(ITEM, wanted) == {"l": {"L": [{"N": "0"}, {"N": "2"}]}}


def test_a_projection_of_the_paths_of_one_attribute_joins_them() -> None:
    wanted = document_path.branches([("m", "y", 1, "z"), ("m", "x"), ("m", "y", 0)])
    assert document_path.project(ITEM, wanted) == {"m": ITEM["m"]}


def test_edited_copies_only_the_path_to_a_change() -> None:
    before = deepcopy(ITEM)
    new = document_path.edited(
        ITEM,
        [
            (("m", "y", 1, "z"), {"S": "new"}),
            (("l", 7), {"N": "7"}),
            (("l", 5), {"N": "5"}),
            (("l", 0), None),
            (("l", 9), None),
            (("l", 1), {"N": "-1"}),
            (("a",), None),
            (("zz",), None),
            (("b",), ONE),
        ],
    )
    assert before == ITEM
    assert new == {
        "b": ONE,
        "l": {"L": [{"N": "-1"}, {"N": "2"}, {"N": "5"}, {"N": "7"}]},
        "m": {"M": {"x": ONE, "y": {"L": [{"S": "s"}, {"M": {"z": {"S": "new"}}}]}}},
    }
    assert new["m"]["M"]["y"]["L"][0] is ITEM["m"]["M"]["y"]["L"][0]


RULE = "with each other; must remove or rewrite one of these paths; path one:"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([("a",), ("a",)], f"overlap {RULE} [a], path two: [a]"),
        ([("m",), ("m", "x")], f"overlap {RULE} [m, x], path two: [m]"),
        ([("m", "x"), ("m",)], f"overlap {RULE} [m], path two: [m, x]"),
        ([("m", 0), ("m", "x")], f"conflict {RULE} [m, x], path two: [m, [0]]"),
        (
            [("m", "y", 0), ("m", "x"), ("m", "y", 0, "z")],
            f"overlap {RULE} [m, y, [0], z], path two: [m, y, [0]]",
        ),
    ],
)
def test_paths_that_overlap_or_conflict_with_an_earlier_path_are_refused(
    paths: list[Path], message: str
) -> None:
    with pytest.raises(ValidationException) as caught:
        document_path.distinct(paths)
    assert caught.value.message == f"Two document paths {message}"


def test_two_paths_with_a_different_step_do_not_overlap() -> None:
    paths: list[Path] = [("a",), ("m", "x"), ("m", "y", 0), ("m", "y", 1), ("l", 0)]
    assert document_path.distinct(paths) == paths
