"""The structures of requests that hold a table, an item or a statement, by the service model.

A *site* is such a structure of an operation's input: the input itself, or an element of a batch or
a transaction. The input of a batch is a site, too, because of its other members.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.call import DYNAMODB
from tests.support.clients.service_model import service_model

_MODEL: Final = service_model()
_NAMING: Final = frozenset({"TableName", "TableArn", "PartiQLStatement"})
_ELEMENT: Final = "[]"
_OF_TABLE: Final = "{}"
Request = dict[str, Any]
# Required members beside the path to a site.
_BESIDE: Final[dict[str, Request]] = {
    "ImportTable": {"S3BucketSource": {"S3Bucket": "a-bucket"}, "InputFormat": "CSV"}
}


class Site(NamedTuple):
    """A site; ``path`` has the steps from the input to the structure.

    A step is the name of a member, ``[]`` for an element of a list, or ``{}`` for a value of a map.
    """

    operation: str
    path: tuple[str, ...]
    # botocore's shapes by member name.
    members: dict[str, Any]
    required: frozenset[str]

    @property
    def name(self) -> str:
        """A name such as ``TransactWriteItems.TransactItems[].Put``."""
        steps = (step if step in (_ELEMENT, _OF_TABLE) else f".{step}" for step in self.path)
        return self.operation + "".join(steps)

    @property
    def is_whole(self) -> bool:
        """Whether the site is the operation's whole input."""
        return not self.path

    def enclosed(self, table: str, *parts: Request) -> Request:
        """A request with these structures at the site; a site in a list may have several."""
        request: Request = _enclosed(self.path, table, parts)
        return (_BESIDE.get(self.operation, {}) | request) if self.path else request


def _enclosed(path: tuple[str, ...], table: str, parts: tuple[Request, ...]) -> Any:
    if not path:
        (part,) = parts
        return part
    step, rest = path[0], path[1:]
    if step == _OF_TABLE:
        return {table: _enclosed(rest, table, parts)}
    if step == _ELEMENT:
        return [_enclosed(rest, table, (part,)) for part in parts]
    return {step: _enclosed(rest, table, parts)}


@cache
def sites() -> tuple[Site, ...]:
    """The sites of all operations of the server, in the order of the operations' names."""
    return tuple(
        site
        for name, operation in sorted(OPERATIONS.items())
        if operation.service == DYNAMODB
        for site in _sites_of(name)
    )


def _sites_of(operation: str) -> Iterator[Site]:
    shape = _MODEL.operation_model(operation).input_shape
    yield Site(operation, (), dict(shape.members), frozenset(shape.required_members))
    if not _names_anything(shape):
        for name, member in shape.members.items():
            yield from _nested_sites(operation, (name,), member)


def _nested_sites(operation: str, path: tuple[str, ...], shape: Any) -> Iterator[Site]:
    match shape.type_name:
        case "list":
            yield from _nested_sites(operation, (*path, _ELEMENT), shape.member)
        case "map":
            yield from _nested_sites(operation, (*path, _OF_TABLE), shape.value)
        case "structure" if _names_anything(shape):
            yield Site(operation, path, dict(shape.members), frozenset(shape.required_members))
        case "structure":
            for name, member in shape.members.items():
                yield from _nested_sites(operation, (*path, name), member)


def _names_anything(structure: Any) -> bool:
    return any(
        shape.name in _NAMING
        or is_item(shape)
        or (shape.type_name == "list" and is_item(shape.member))
        for shape in structure.members.values()
    )


def is_item(shape: Any) -> bool:
    """Whether a shape is an item or a key: attribute values by name."""
    return bool(shape.type_name == "map" and shape.value.name == "AttributeValue")


def holds_values(shape: Any) -> bool:
    """Whether a shape contains attribute values."""
    match shape.type_name:
        case "list":
            return holds_values(shape.member)
        case "map":
            return holds_values(shape.value)
        case "structure":
            return shape.name == "AttributeValue" or any(map(holds_values, shape.members.values()))
        case _:
            return False
