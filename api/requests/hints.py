"""Type hints of input shapes, split into bare types and constraints."""

from __future__ import annotations

from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from dynactor.api.requests import shapes

JAVA_PACKAGE: Final = "com.amazonaws.dynamodb.v20120810."


class Hint(Struct, frozen=True):
    """A type hint, split into its bare type and its constraints."""

    type: Any
    limits: Meta = Meta()
    table_name: shapes.TableNameRule | None = None
    length_first: bool = False
    not_empty: shapes.NotEmptyRule | None = None
    choice: shapes.ChoiceRule | None = None
    is_long: bool = False

    @property
    def kind(self) -> Any:
        """The class of the type: ``str``, ``list``, ``Literal``, a structure, …."""
        return get_origin(self.type) or self.type

    @property
    def elements(self) -> Hint:
        """The hint of a list's or map's elements."""
        return parse_hint(get_args(self.type)[-1])

    @property
    def keys(self) -> Hint:
        """The hint of a map's keys."""
        return parse_hint(get_args(self.type)[0])

    @property
    def structure_name(self) -> str:
        """A structure's name in the service model."""
        name: str = self.type.__name__
        return name.removesuffix("Shape")


@lru_cache(maxsize=1024)
def parse_hint(annotation: Any) -> Hint:
    """The hint of an annotation; an optional type gives the hint of the type without ``None``."""
    origin = get_origin(annotation)
    if origin is Union or origin is UnionType:
        (inner,) = (option for option in get_args(annotation) if option is not NoneType)
        return parse_hint(inner)
    if origin is not Annotated:
        return Hint(annotation)
    bare, *annotations = get_args(annotation)
    found: dict[str, Any] = {}
    for constraint in annotations:
        match constraint:
            case Meta():
                found["limits"] = constraint
            case shapes.TableNameRule():
                found["table_name"] = constraint
            case shapes.LengthFirstRule():
                found["length_first"] = True
            case shapes.NotEmptyRule():
                found["not_empty"] = constraint
            case shapes.ChoiceRule():
                found["choice"] = constraint
            case shapes.LongRule():
                found["is_long"] = True
    return Hint(bare, **found)


class ShapeMember(Struct, frozen=True):
    """A member of a structure."""

    name: str
    hint: Hint
    required: bool


@lru_cache(maxsize=256)
def shape_members(shape: type[Struct]) -> tuple[ShapeMember, ...]:
    """The members of a structure, in the order in which DynamoDB lists their errors."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple(
        ShapeMember(
            field.name,
            parse_hint(hints[field.name]),
            required=field.default is NODEFAULT and field.default_factory is NODEFAULT,
        )
        for field in fields(shape)
    )


def java_class(hint: Hint) -> str:
    """The name of a hint's Java class, as SerializationExceptions show it."""
    if hint.type == shapes.AttributeValue:
        return JAVA_PACKAGE + "AttributeValue"
    if hint.kind is list:
        return f"java.util.List<{java_class(hint.elements)}>"
    if hint.kind is str:
        return "java.lang.String"
    return JAVA_PACKAGE + hint.structure_name


def java_name(member: str) -> str:
    """A member's name in Java, with a small first letter: ``NULL`` becomes ``nULL``."""
    return member[0].lower() + member[1:]
