"""The filter of an export selects items by their keys and attributes."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.transfers.item_filter import item_filter
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem

BOOK: Item = {"pk": {"S": "book"}, "pages": {"N": "300"}, "title": {"S": "Moby"}}
FILM: Item = {"pk": {"S": "film"}, "minutes": {"N": "90"}}


def exported(item: Item, **specification: Any) -> Item | None:
    """The part of an item that an export with a FilterSpecification has."""
    data = item_filter(specification).exported_data(StoredItem.of(item, 0))
    return None if data is None else items.decode(data)


def test_a_filter_without_expressions_keeps_whole_items() -> None:
    assert exported(BOOK) == BOOK


def test_a_key_condition_selects_items() -> None:
    wanted = {
        "KeyConditionExpression": "pk = :b",
        "ExpressionAttributeValues": {":b": {"S": "book"}},
    }
    assert exported(BOOK, **wanted) == BOOK
    assert exported(FILM, **wanted) is None


def test_a_filter_expression_selects_items_and_a_projection_attributes() -> None:
    wanted = {
        "FilterExpression": "attribute_exists(pages)",
        "ProjectionExpression": "pk, title",
    }
    assert exported(BOOK, **wanted) == {"pk": {"S": "book"}, "title": {"S": "Moby"}}
    assert exported(FILM, **wanted) is None


def test_a_placeholder_that_no_expression_uses_is_refused() -> None:
    with pytest.raises(ValidationException, match=":b"):
        item_filter(
            {
                "FilterExpression": "attribute_exists(pages)",
                "ExpressionAttributeValues": {":b": {"S": "book"}},
            }
        )
