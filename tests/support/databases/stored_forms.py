"""Describes as text the records that are stored as maps from field names to values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec.inspect as inspection
from msgspec import Struct


class Field(Struct, frozen=True, omit_defaults=True):
    """The type of a stored record's field, and whether the field is optional.

    ``alternatives`` are the values of a literal type.
    """

    type: str
    alternatives: tuple[str, ...] = ()
    may_be_missing: bool = False


def fields(forms: Mapping[str, type[Struct]]) -> dict[str, Field]:
    """All fields of these records, and of nested records, by path."""
    return {
        path: field
        for name, form in forms.items()
        for path, field in _fields(f"{name}: ", _struct(inspection.type_info(form)))
    }


def _struct(described: inspection.Type) -> inspection.StructType:
    assert isinstance(described, inspection.StructType)
    return described


def _fields(prefix: str, struct: inspection.StructType) -> Iterator[tuple[str, Field]]:
    assert struct.tag is None, f"the name of {struct.cls} is stored"
    assert not struct.array_like, f"{struct.cls} is stored without the names of its fields"
    for field in struct.fields:
        path = f"{prefix}{field.encode_name}"
        alternatives = tuple(sorted(_alternatives(field.type)))
        yield path, Field(_named(field.type), alternatives, not field.required)
        for inner, suffix in _records(field.type, ""):
            yield from _fields(f"{path}{suffix}.", inner)


def _records(
    described: inspection.Type, suffix: str
) -> Iterator[tuple[inspection.StructType, str]]:
    """The nested records of a type, and the continuation of their paths."""
    match described:
        case inspection.StructType():
            yield described, suffix
        case inspection.UnionType():
            for each in described.types:
                yield from _records(each, suffix)
        case inspection.VarTupleType():
            yield from _records(described.item_type, f"{suffix}[]")
        case inspection.DictType():
            yield from _records(described.value_type, f"{suffix}{{}}")


def _named(described: inspection.Type) -> str:
    match described:
        case inspection.StructType():
            return "record"
        case inspection.UnionType():
            return " or ".join(sorted(map(_named, described.types)))
        case inspection.VarTupleType():
            return f"list of {_named(described.item_type)}"
        case inspection.TupleType():
            return f"list of ({', '.join(map(_named, described.item_types))})"
        case inspection.DictType():
            return f"map of {_named(described.key_type)} to {_named(described.value_type)}"
        case inspection.LiteralType():
            return "one of its alternatives"
        case _:
            return type(described).__name__.removesuffix("Type").lower()


def _alternatives(described: inspection.Type) -> frozenset[str]:
    match described:
        case inspection.UnionType():
            return frozenset().union(*map(_alternatives, described.types))
        case inspection.LiteralType():
            return frozenset(map(str, described.values))
        case _:
            return frozenset()
