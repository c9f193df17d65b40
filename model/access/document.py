"""Reads JSON with the line of each value, so that errors of a policy can name the line."""

from __future__ import annotations

import re
from typing import Final, NoReturn, TypeAlias

import msgspec
from msgspec import Struct

_DEPTH: Final = 20
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL: Final = re.compile(r"true|false|null|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class PolicyError(Exception):
    """A policy is not valid. ``line`` is where, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


class MissingElement(PolicyError):
    """A policy or a statement lacks an element that it must have."""

    def __init__(self, name: str, message: str, line: int) -> None:
        super().__init__(message, line)
        self.name = name


class JsonNode(Struct, frozen=True):
    """A JSON value and its line. A number is its text, because policies compare texts."""

    value: Value
    line: int


Value: TypeAlias = "str | bool | tuple[JsonNode, ...] | dict[str, JsonNode] | None"


def parse_json(text: str) -> JsonNode:
    """The value of a JSON text; raises ``PolicyError``, also for repeated names in objects."""
    reader = _JsonReader(text)
    node = reader.value(0)
    reader.skip_space()
    if reader.at < len(text):
        reader.fail("the document ends here, but more text follows")
    return node


class _JsonReader:
    """Reads one text from start to end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._line = 1
        self._counted = 0

    def fail(self, message: str) -> NoReturn:
        raise PolicyError(message, self.line())

    def line(self) -> int:
        """The line of the current position, which never goes back."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def skip_space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None, "the expression matches an empty text"
        self.at = found.end()

    def value(self, depth: int) -> JsonNode:
        self.skip_space()
        if depth > _DEPTH:
            self.fail("the document is nested too deeply")
        line = self.line()
        match self.text[self.at : self.at + 1]:
            case "{":
                return JsonNode(self._members(depth), line)
            case "[":
                return JsonNode(self._elements(depth), line)
            case '"':
                return JsonNode(self._string(), line)
        literal = _LITERAL.match(self.text, self.at)
        if literal is None:
            self.fail("this is not JSON: a value is expected here")
        self.at = literal.end()
        constants: dict[str, bool | None] = {"true": True, "false": False, "null": None}
        return JsonNode(constants.get(literal[0], literal[0]), line)

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            self.fail("this is not JSON: a text is expected here")
        try:
            content: str = msgspec.json.decode(found[0], type=str)
        except msgspec.DecodeError:
            self.fail("this text is not valid JSON")
        self.at = found.end()
        return content

    def _ends(self, closing: str, *, is_first: bool) -> bool:
        """Whether the list or object ends here; otherwise the next element follows."""
        self.skip_space()
        sign = self.text[self.at : self.at + 1]
        if sign == closing:
            self.at += 1
            return True
        if not is_first:
            if sign != ",":
                self.fail(f"this is not JSON: a comma or {closing} is expected here")
            self.at += 1
            self.skip_space()
        return False

    def _elements(self, depth: int) -> tuple[JsonNode, ...]:
        self.at += 1
        found: list[JsonNode] = []
        while not self._ends("]", is_first=not found):
            found.append(self.value(depth + 1))
        return tuple(found)

    def _members(self, depth: int) -> dict[str, JsonNode]:
        self.at += 1
        found: dict[str, JsonNode] = {}
        while not self._ends("}", is_first=not found):
            name = self._string()
            if name in found:
                self.fail(f"{name} is given twice")
            self.skip_space()
            if self.text[self.at : self.at + 1] != ":":
                self.fail(f"this is not JSON: a colon is expected after {name}")
            self.at += 1
            found[name] = self.value(depth + 1)
        return found
