"""Actors receive messages through ``Ref``; the control plane returns only immutable values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from dynactor.actors.database.parts import PARTS
from dynactor.actors.parts.part import Part
from tests.architecture.sources import SOURCES, tree

CONTAINERS = {"Sequence", "Mapping", "tuple", "frozenset"}
PLAIN = {str, bytes, int, float, bool, NoneType}


def calls(name: str, method: str) -> Iterator[ast.expr]:
    """The objects on which a module of the product calls this method."""
    for node in ast.walk(tree(name)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node.func.value


def test_messages_to_others_go_through_a_reference():
    """An actor's code sends messages to another actor with ``Ref``, not to its mailbox directly."""
    senders = {
        f"{name}: {ast.unparse(mailbox)}"
        for name in SOURCES
        if name.startswith("dynactor.actors.") and not name.startswith("dynactor.actors.runtime.")
        for mailbox in calls(name, "put_nowait")
    }
    assert {sender for sender in senders if not sender.endswith(": self.mailbox")} == set()


def test_request_handlers_use_the_database_and_not_its_actor():
    for name in SOURCES:
        if name.startswith("dynactor.api."):
            for node in ast.walk(tree(name)):
                if isinstance(node, ast.ImportFrom):
                    assert node.module != "dynactor.actors.database.database_actor", name
                if isinstance(node, ast.Attribute):
                    assert node.attr != "actor", f"{name}: {ast.unparse(node)}"


def members_read() -> set[tuple[type[Part], str]]:
    """The members of parts that request handlers use, such as ``database.part(Replays).find``."""
    return {
        (parts[node.value.args[0].id], node.attr)
        for parts in [{part.__name__: part for part in PARTS}]
        for name in SOURCES
        if name.startswith("dynactor.api.")
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "part"
        and isinstance(node.value.args[0], ast.Name)
        and hasattr(parts[node.value.args[0].id], node.attr)
    }


def test_request_handlers_read_parts():
    assert len(members_read()) > 8


@pytest.mark.parametrize(
    ("part", "name"),
    sorted(members_read(), key=str),
    ids=lambda each: getattr(each, "__name__", each),
)
def test_a_member_of_a_part_that_requests_read_returns_immutable_values(
    part: type[Part], name: str
):
    member = getattr(part, name)
    function = member.fget if isinstance(member, property) else member
    shown = get_type_hints(function)["return"]
    assert is_frozen(shown), f"{part.__name__}.{name} shows {shown}"


def is_frozen(shown: Any) -> bool:
    """Whether a value of this type allows no change of the object it was taken from."""
    origin = get_origin(shown)
    if origin is Literal or shown in PLAIN or shown is Ellipsis:
        return True
    if origin in (Union, UnionType) or (origin and origin.__name__ in CONTAINERS):
        return all(map(is_frozen, get_args(shown)))
    return isinstance(shown, type) and (
        (issubclass(shown, Struct) and shown.__struct_config__.frozen)
        or (issubclass(shown, tuple) and hasattr(shown, "_fields"))
    )
