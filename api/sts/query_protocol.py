"""The Query protocol of STS: forms in, XML out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

_NAMESPACE: Final = "https://sts.amazonaws.com/doc/2011-06-15/"
# More fields than any request has: 50 tags with two fields each, and a few others.
_MOST_FIELDS: Final = 200


class StsError(Exception):
    """An error of STS with its code and status."""

    def __init__(self, code: str, message: str, http_status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status


def parse_form(body: bytes) -> dict[str, str]:
    """The fields of a form; of a repeated field the last value. Raises ``StsError``."""
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise StsError("MalformedQueryString", "The body is not a form") from None
    return dict(pairs)


def members(form: Mapping[str, str], name: str) -> list[dict[str, str]]:
    """The elements of a list of structures, such as ``Tags.member.1.Key``."""
    found: dict[str, dict[str, str]] = {}
    prefix = f"{name}.member."
    for field, value in form.items():
        if field.startswith(prefix):
            number, _, member = field.removeprefix(prefix).partition(".")
            found.setdefault(number, {})[member] = value
    return [found[number] for number in sorted(found, key=lambda text: (len(text), text))]


def answer(action: str, result: str, request_id: str) -> bytes:
    """The XML of a success; ``result`` is XML."""
    return (
        f'<{action}Response xmlns="{_NAMESPACE}"><{action}Result>{result}</{action}Result>'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
        f"</{action}Response>\n"
    ).encode()


def error_answer(error: StsError, request_id: str) -> bytes:
    """The XML of an error."""
    return (
        f'<ErrorResponse xmlns="{_NAMESPACE}"><Error>'
        f"{element('Type', 'Sender')}{element('Code', error.code)}"
        f"{element('Message', error.message)}"
        f"</Error><RequestId>{request_id}</RequestId></ErrorResponse>\n"
    ).encode()


def element(name: str, text: str) -> str:
    """An element with a text."""
    return f"<{name}>{escape(text)}</{name}>"


def time_text(epoch_seconds: int) -> str:
    """A time in an answer."""
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
