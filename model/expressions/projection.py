"""Projections: the parts of an item that are returned."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.expressions.parser import invalid, projection_tree
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.values import attribute_value, document_path
from dynactor.model.values.document_path import Branch
from dynactor.model.values.item import Item


class Projector(Struct, frozen=True):
    """A bound projection."""

    branches: tuple[Branch, ...]

    @property
    def names(self) -> frozenset[str]:
        """The attributes that the projection returns, in whole or in part."""
        return frozenset(str(branch.part) for branch in self.branches)

    def project(self, item: Item) -> Item:
        """The selected parts of an item, inside the same maps and lists as in the item."""
        return document_path.project(item, self.branches)


def parse_projection(text: str, placeholders: Placeholders) -> Projector:
    """Parse and bind a ProjectionExpression; raises ``ValidationException``."""
    tree = projection_tree(text)
    try:
        paths = placeholders.distinct_paths(tree)
    except ValidationException as error:
        raise invalid("ProjectionExpression", error.message) from None
    return Projector(document_path.branches(paths))


def projector_of_names(names: Sequence[str]) -> Projector:
    """AttributesToGet: whole attributes, by their names; raises ``ValidationException``."""
    for name in names:
        attribute_value.check_name(name)
    for at, name in enumerate(names):
        if name in names[:at]:
            raise invalid_value(f"Duplicate value in attribute name: {name}")
    return Projector(document_path.branches((name,) for name in names))
