"""Texts of policies with wildcards and variables, and how they match.

``*`` stands for any text and ``?`` for any character. ``${aws:username}`` stands for the value of a
condition key, ``${aws:PrincipalTag/team, 'none'}`` has a default, and ``${*}``, ``${?}`` and
``${$}`` stand for the characters themselves. Wildcards in the value of a variable are literal.

Source: IAM User Guide, "IAM policy elements: Variables and tags".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

# The values of a condition key; None if the request has no such key.
Lookup: TypeAlias = Callable[[str], Sequence[str] | None]
Matcher: TypeAlias = Callable[[str], object]
# A text without ``*``. In a tuple of characters, None stands for ``?``.
_Piece: TypeAlias = str | tuple[str | None, ...]

_ESCAPES: Final = {"*": "*", "?": "?", "$": "$"}
_DEFAULT: Final = re.compile(r"'([^']*)'\Z")
_ARN_COLONS: Final = 5


class BadTemplate(Exception):
    """A variable is malformed; the message says how."""


class Wildcard(Struct, frozen=True):
    """``*`` or ``?``."""

    sign: str


class TemplateVariable(Struct, frozen=True):
    """A condition key, in lower case, whose value is inserted; ``default`` if it has none."""

    key: str
    default: str | None = None


class Template(Struct, frozen=True):
    """A text in parts. A part that is a plain text is literal."""

    parts: tuple[str | Wildcard | TemplateVariable, ...]

    @property
    def variables(self) -> tuple[TemplateVariable, ...]:
        """The variables that have no value yet."""
        return tuple(part for part in self.parts if isinstance(part, TemplateVariable))

    @property
    def literal(self) -> str | None:
        """The text, if the template has neither wildcards nor variables."""
        if len(self.parts) > 1 or not all(isinstance(part, str) for part in self.parts):
            return None
        return "".join(str(part) for part in self.parts)

    @property
    def text(self) -> str:
        """The text of a policy that stands for this template, which has no variables."""
        assert not self.variables
        return "".join(
            part.sign if isinstance(part, Wildcard) else literal(str(part)) for part in self.parts
        )

    @property
    def start(self) -> str | None:
        """The text before a single ``*`` at the end, if the template has only both."""
        match self.parts:
            case (str() as start, Wildcard("*")):
                return start
        return None

    def with_values(
        self, lookup: Lookup, is_known: Callable[[str], bool] | None = None
    ) -> Template | None:
        """The template with the values of its variables; None if a variable has no value.

        A key has a value if it has exactly one. Variables whose keys are not ``is_known`` stay.
        """
        if not self.variables:
            return self
        parts: list[str | Wildcard | TemplateVariable] = []
        for part in self.parts:
            if not isinstance(part, TemplateVariable) or (
                is_known is not None and not is_known(part.key)
            ):
                parts.append(part)
                continue
            values = lookup(part.key)
            if values is not None and len(values) == 1:
                parts.append(values[0])
            elif part.default is not None:
                parts.append(part.default)
            else:
                return None
        return Template(_joined(parts))


def literal(text: str) -> str:
    """A text in the form in which a policy stands for exactly this text."""
    return text.replace("$", "${$}").replace("*", "${*}").replace("?", "${?}")


def parse_template(text: str, *, wildcards: bool, variables: bool) -> Template:
    """Parse a text of a policy; ``wildcards``: ``*`` and ``?``. Raises ``BadTemplate``."""
    parts: list[str | Wildcard | TemplateVariable] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if variables and text.startswith("${", at):
            end = text.find("}", at)
            if end < 0:
                raise BadTemplate(f"the variable in {text!r} has no closing brace")
            parts.append(_variable(text[at + 2 : end]))
            at = end + 1
            continue
        parts.append(Wildcard(sign) if wildcards and sign in "*?" else sign)
        at += 1
    return Template(_joined(parts))


def _variable(text: str) -> str | TemplateVariable:
    if text in _ESCAPES:
        return _ESCAPES[text]
    key, comma, rest = text.partition(",")
    default = _DEFAULT.match(rest.strip())
    if not key.strip() or bool(comma) is not bool(default):
        raise BadTemplate(f"${{{text}}} is not a variable")
    return TemplateVariable(key.rstrip().lower(), default[1] if default else None)


def _joined(
    parts: Sequence[str | Wildcard | TemplateVariable],
) -> tuple[str | Wildcard | TemplateVariable, ...]:
    """The parts, with neighboring literals joined."""
    joined: list[str | Wildcard | TemplateVariable] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


@lru_cache(maxsize=4096)
def text_pattern(template: Template) -> Matcher:
    """A function that tells whether a whole text matches a template without variables.

    It takes no longer than the product of both lengths, even for patterns with many wildcards,
    because clients choose the texts.
    """
    pieces = _pieces(template)
    first, *middle = pieces
    if not middle:
        exact = template.literal
        if exact is not None:
            return exact.__eq__
        return lambda given: len(given) == len(first) and _stands_at(first, given, 0)
    last = middle.pop()
    ends_chars = len(first) + len(last)

    def matches(given: str) -> bool:
        end = len(given) - len(last)
        if (
            len(given) < ends_chars
            or not _stands_at(first, given, 0)
            or not _stands_at(last, given, end)
        ):
            return False
        at = len(first)
        for piece in middle:
            at = _find(piece, given, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    return matches


def _pieces(template: Template) -> list[_Piece]:
    """The texts between the wildcards ``*``."""
    pieces: list[list[str | None]] = [[]]
    for part in template.parts:
        if isinstance(part, str):
            pieces[-1] += part
        elif isinstance(part, Wildcard) and part.sign == "*":
            pieces.append([])
        else:
            assert isinstance(part, Wildcard), "variables are replaced before"
            pieces[-1].append(None)
    return [
        tuple(piece) if None in piece else "".join(sign for sign in piece if sign is not None)
        for piece in pieces
    ]


def _stands_at(piece: _Piece, text: str, at: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, at)
    return at + len(piece) <= len(text) and all(
        sign is None or sign == text[at + offset] for offset, sign in enumerate(piece)
    )


def _find(piece: _Piece, text: str, start: int, end: int) -> int:
    """The first position of a piece within bounds; -1 if there is none."""
    if isinstance(piece, str):
        return text.find(piece, start, end)
    return next(
        (at for at in range(start, end - len(piece) + 1) if _stands_at(piece, text, at)), -1
    )


@lru_cache(maxsize=4096)
def arn_pattern(template: Template) -> Matcher:
    """A function that tells whether an ARN matches a template without variables.

    A wildcard matches within one of the first five fields, or to the end within the last one.
    """
    if template == EVERYTHING:
        return lambda _: True
    exact = template.literal
    if exact is not None:
        return exact.__eq__
    fields: list[list[str | Wildcard | TemplateVariable]] = [[]]
    for part in template.parts:
        if not isinstance(part, str):
            fields[-1].append(part)
            continue
        texts = part.split(":", _ARN_COLONS - len(fields) + 1)
        fields[-1].append(texts[0])
        fields += [[text] for text in texts[1:]]
    patterns = [text_pattern(Template(_joined(field))) for field in fields]

    def matches(given: str) -> bool:
        texts = given.split(":", _ARN_COLONS)
        return len(texts) == len(patterns) and all(
            pattern(text) for pattern, text in zip(patterns, texts, strict=True)
        )

    return matches


def is_arn(template: Template) -> bool:
    """Whether a template has the six fields of an ARN, or is ``*``."""
    if template == EVERYTHING:
        return True
    first = template.parts[0] if template.parts else ""
    colons = sum(part.count(":") for part in template.parts if isinstance(part, str))
    return isinstance(first, str) and first.startswith("arn:") and colons >= _ARN_COLONS


EVERYTHING: Final = Template((Wildcard("*"),))
