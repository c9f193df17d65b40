"""Actors receive messages through ``Ref``; the control plane returns only immutable values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import isfunction
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from dynactor.actors.database.control_plane import ControlPlane
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


def control_plane_members() -> list[tuple[str, Any]]:
    """The members of the control plane, with the types of their values."""
    found = []
    for reads in get_type_hints(ControlPlane).values():
        for name, member in vars(reads).items():
            function = member.fget if isinstance(member, property) else member
            if isfunction(function) and not name.startswith("_"):
                found.append((f"{reads.__name__}.{name}", get_type_hints(function)["return"]))
    return found


def test_the_control_plane_has_members():
    assert len(control_plane_members()) > 8


@pytest.mark.parametrize(("name", "shown"), control_plane_members(), ids=str)
def test_a_member_of_the_control_plane_returns_immutable_values(name: str, shown: Any):
    assert is_frozen(shown), f"{name} shows {shown}"


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
