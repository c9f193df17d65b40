"""Replaces values by pseudonyms, so that copies of production data can leave production.

A pseudonym is a keyed hash of the value. So equal values have equal pseudonyms in every table and
every run with the same seed, and without the seed nobody can find the value by trying.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, cast

from cyclopts import Parameter

from dynactor.api.commands.tables.transfer_failed import TransferFailed

Method: TypeAlias = Literal["hash", "drop", "fake:email"]

_METHODS: Final = ("hash", "drop", "fake:email")
# Any element of a list. Attribute names follow dots.
_EACH: Final = "[*]"
_PATH: Final = re.compile(r"[^.\[\]]+(\[\*\])*(\.[^.\[\]]+(\[\*\])*)*")
_STEP: Final = re.compile(r"\[\*\]|[^.\[\]]+")
_HASH_BYTES: Final = 16
# An integer of 15 bytes has at most 37 digits. DynamoDB allows 38 digits.
_NUMBER_BYTES: Final = 15
_SETS: Final = {"SS": "S", "NS": "N", "BS": "B"}
_SHOWN_PATHS: Final = 1_000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AnonymizeOptions:
    """The values to replace."""

    anonymize: Annotated[
        tuple[str, ...], Parameter(name=("--anonymize", "--anonymise"), negative=())
    ] = ()
    """Replace the values of an attribute, as ATTRIBUTE=hash, ATTRIBUTE=drop or
    ATTRIBUTE=fake:email. A path like a.b[*].c names attributes in maps and lists."""

    seed: str | None = None
    """Secret text that determines the pseudonyms: the same seed gives the same ones."""

    def anonymizer(self, key_types: Mapping[str, str]) -> Anonymizer | None:
        """The rules of the options, if any, for a key of these types; raises ``TransferFailed``."""
        if not self.anonymize:
            return None
        rules = dict(sorted(map(_rule, self.anonymize), key=itemgetter(0)))
        # With an empty seed, every reader could check a guessed value.
        if not self.seed and any(method != "drop" for method in rules.values()):
            raise TransferFailed("--anonymize needs a --seed that is not empty")
        for (root, *rest), method in rules.items():
            if rest or root not in key_types:
                continue
            if method == "drop":
                raise TransferFailed(f"{root} is part of the key: it can't be dropped")
            if method == "fake:email" and key_types[root] != "S":
                raise TransferFailed(f"{root} is part of the key, and not a string")
        return Anonymizer(rules, (self.seed or "").encode())


_Path: TypeAlias = tuple[str, ...]


def _rule(text: str) -> tuple[_Path, Method]:
    path, _, method = text.rpartition("=")
    if method not in _METHODS or _PATH.fullmatch(path) is None:
        raise TransferFailed(
            f"--anonymize {text} is not understood: give ATTRIBUTE={'|'.join(_METHODS)}"
        )
    return tuple(_STEP.findall(path)), cast("Method", method)


class _PathRules(NamedTuple):
    """The rules below one step of a path, and the method for the value there."""

    method: Method | None
    members: dict[str, _PathRules]


class Anonymizer:
    """Replaces the values of items by rules, and collects the attributes without a rule."""

    def __init__(self, rules: Mapping[_Path, Method], seed: bytes) -> None:
        self._rules = _tree([(path, method) for path, method in rules.items()])
        self._seed = seed
        self._unnamed: dict[str, None] = {}

    @property
    def fingerprint(self) -> str:
        """Identifies the rules and the seed, so that a resumed transfer uses the same ones."""
        return hmac.digest(self._seed, repr(self._rules).encode(), "sha256").hex()

    @property
    def unnamed(self) -> Sequence[str]:
        """The paths of values that are written unchanged, at most 1,000."""
        return tuple(self._unnamed)

    def changed(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a checked item, with pseudonyms."""
        return self._map(item, self._rules, "")

    def _map(self, members: Mapping[str, Any], rules: _PathRules, path: str) -> dict[str, Any]:
        found = {}
        for name, value in members.items():
            below = rules.members.get(name)
            where = f"{path}.{name}" if path else name
            if below is None or below.method != "drop":
                found[name] = self._value(value, below, where)
        return found

    def _value(self, value: dict[str, Any], rules: _PathRules | None, path: str) -> dict[str, Any]:
        if rules is None:
            self._note(value, path)
            return value
        if rules.method is not None:
            return self._replaced(value, rules.method)
        [(type_name, content)] = value.items()
        if type_name == "M":
            return {"M": self._map(content, rules, path)}
        if type_name == "L":
            below = rules.members.get(_EACH)
            if below is not None and below.method == "drop":
                return {"L": []}
            return {"L": [self._value(each, below, path + _EACH) for each in content]}
        # The rules are for members that this value does not have.
        self._note(value, path)
        return value

    def _note(self, value: dict[str, Any], path: str) -> None:
        """Collect the paths of the simple values in a value without a rule."""
        if len(self._unnamed) < _SHOWN_PATHS:
            for found in _paths(value, path):
                self._unnamed.setdefault(found)

    def _replaced(self, value: dict[str, Any], method: Method) -> dict[str, Any]:
        [(type_name, content)] = value.items()
        if type_name == "M":
            members = content.items()
            return {"M": {name: self._replaced(each, method) for name, each in members}}
        if type_name == "L":
            return {"L": [self._replaced(each, method) for each in content]}
        if type_name in _SETS:
            element = _SETS[type_name]
            return {type_name: sorted(self._pseudonym(element, each, method) for each in content)}
        if type_name in _SETS.values():
            return {type_name: self._pseudonym(type_name, content, method)}
        return value

    def _pseudonym(self, type_name: str, content: str, method: Method) -> str:
        digest = hmac.digest(self._seed, f"{type_name}:{content}".encode(), "sha256")
        if type_name == "N":
            return str(int.from_bytes(digest[:_NUMBER_BYTES], "big"))
        if type_name == "B":
            return b64encode(digest[:_HASH_BYTES]).decode()
        text = digest[:_HASH_BYTES].hex()
        return f"{text}@example.com" if method == "fake:email" else text


def _tree(rules: Sequence[tuple[_Path, Method]]) -> _PathRules:
    """The rules by the steps of their paths."""
    method = next((method for path, method in rules if not path), None)
    first = dict.fromkeys(path[0] for path, _ in rules if path)
    return _PathRules(
        method,
        {
            step: _tree([(path[1:], each) for path, each in rules if path and path[0] == step])
            for step in first
        },
    )


def _paths(value: dict[str, Any], path: str) -> Iterator[str]:
    for type_name, content in value.items():
        if type_name == "M" and content:
            for name, member in content.items():
                yield from _paths(member, f"{path}.{name}")
        elif type_name == "L" and content:
            for element in content:
                yield from _paths(element, path + _EACH)
        else:
            yield path
