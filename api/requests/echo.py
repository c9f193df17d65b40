"""A refused value, as DynamoDB's error message about a broken constraint shows it.

The older request layer prints Java's ``toString`` of its structures, the newer one prints JSON.
Members that a request leaves out are not printed. The text is at most a few times the request.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import Any, Final

import msgspec

from dynactor.api.requests import shapes
from dynactor.api.requests.hints import Hint, java_name, shape_members
from dynactor.model.limits import NESTING_LEVELS

_CUT_OFF: Final = "..."


def json_echo(value: Any) -> str:
    """A value as compact JSON; a text is shown unchanged."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def java_echo(value: Any, hint: Hint) -> str:
    """A value of a shape as Java prints it.

    Structures are ``Name(member=value, ...)``, maps ``{key=value, ...}``, lists ``[a, b]``.
    Values with a wrong JSON type have been refused before, with a SerializationException.
    """
    if value is None:
        return "null"
    if hint.type == shapes.AttributeValue:
        return _attribute_value(value, 1)
    if hint.kind is list:
        return f"[{', '.join(java_echo(element, hint.elements) for element in value)}]"
    if hint.kind is dict:
        shown = (f"{key}={java_echo(element, hint.elements)}" for key, element in value.items())
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, dict):
        return str(value)
    shown = (
        f"{java_name(member.name)}={java_echo(value[member.name], member.hint)}"
        for member in shape_members(hint.type)
        if value.get(member.name) is not None
    )
    return f"{hint.structure_name}({', '.join(shown)})"


def _attribute_value(value: Any, level: int) -> str:
    """An attribute value, cut off below the deepest valid level."""
    if level > NESTING_LEVELS + 1:
        return _CUT_OFF
    if not isinstance(value, dict):
        return "null"
    shown = (
        f"{java_name(type_name)}={_content(type_name, content, level)}"
        for type_name, content in value.items()
        if content is not None
    )
    return f"AttributeValue({', '.join(shown)})"


def _content(type_name: str, content: Any, level: int) -> str:
    if type_name == "M" and isinstance(content, dict):
        shown = (
            f"{name}={_attribute_value(member, level + 1)}" for name, member in content.items()
        )
        return f"{{{', '.join(shown)}}}"
    if type_name == "L" and isinstance(content, list):
        return f"[{', '.join(_attribute_value(member, level + 1) for member in content)}]"
    if isinstance(content, list):
        return f"[{', '.join(_scalar(type_name[0], member) for member in content)}]"
    return _scalar(type_name, content)


def _scalar(type_name: str, content: Any) -> str:
    if isinstance(content, bool):
        return str(content).lower()
    if type_name == "B" and isinstance(content, str):
        size_bytes = _decoded_bytes(content)
        return f"java.nio.HeapByteBuffer[pos=0 lim={size_bytes} cap={size_bytes}]"
    return str(content)


def _decoded_bytes(base64_text: str) -> int:
    try:
        return len(a2b_base64(base64_text))
    except (Base64Error, ValueError):
        return 0
