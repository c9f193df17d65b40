"""The filter of an export: which items it has, and which of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import Projector, parse_projection
from dynactor.model.key_conditions.key_condition import KeyTerms, bind_key_condition
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem


class ItemFilter(Struct, frozen=True):
    """The bound expressions of a FilterSpecification."""

    key: KeyTerms | None
    condition: Condition | None
    projector: Projector | None
    # The attributes with a path into them.
    nested: frozenset[str]

    def check(self, table: TableDefinition) -> None:
        """Check the expressions as a Query of this table does; raises ``ValidationException``."""
        if self.key is not None:
            self.key.on(table.key_schema)
            used = frozenset() if self.condition is None else self.condition.attributes
            for attribute in table.key_schema.attributes:
                if attribute.name in used:
                    raise ValidationException(
                        "Filter Expression can only contain non-primary key attributes: Primary "
                        f"key attribute: {attribute.name}"
                    )
        check_scalar_keys(table, self.nested)

    def exported_data(self, stored: StoredItem) -> bytes | None:
        """The JSON of an item's wanted attributes; None if the item is left out."""
        item = stored.item
        if self.key is not None and not self.key.root.evaluate(item):
            return None
        if self.condition is not None and not self.condition.evaluate(item):
            return None
        return stored.data if self.projector is None else items.encode(self.projector.project(item))


def item_filter(specification: Mapping[str, Any]) -> ItemFilter:
    """The filter of a FilterSpecification.

    Raises:
        ValidationException, SerializationException: an expression or a placeholder is invalid.
    """
    placeholders = Placeholders(
        specification.get("ExpressionAttributeNames"),
        specification.get("ExpressionAttributeValues"),
    )
    key = specification.get("KeyConditionExpression")
    condition = specification.get("FilterExpression")
    projection = specification.get("ProjectionExpression")
    found = ItemFilter(
        None if key is None else bind_key_condition(key, placeholders),
        None
        if condition is None
        else parse_condition(condition, placeholders, kind="FilterExpression"),
        None if projection is None else parse_projection(projection, placeholders),
        frozenset(placeholders.nested),
    )
    placeholders.check_all_used()
    return found
