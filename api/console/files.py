"""The files of the pages, and the headers that keep foreign code out of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web
from msgspec import Struct

from dynactor.api.http.settings import SERVER_NAME

FILES_PATH: Final = "/console/"

_HERE: Final = Path(__file__).parent
_FOLDERS: Final = ("app", "vendor")
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_INDEX: Final = "app/index.html"
# The place of the token in the page. A token has only hexadecimal digits, so it needs no escape.
_TOKEN_PLACE: Final = b"{{token}}"
# Nothing from elsewhere, and nothing inline: an item with a script in it can't run.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Server": SERVER_NAME,
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _PageFile(Struct, frozen=True):
    """A file as it is sent; ``packed`` is compressed by gzip."""

    content_type: str
    body: bytes
    packed: bytes
    tag: str


class PageFiles:
    """The files of the pages, read at the first request for one of them."""

    def __init__(self) -> None:
        self._files: dict[str, _PageFile] = {}

    def index(self, token: str) -> web.Response:
        """The page, with the token for its requests; an empty token shows the login."""
        body = self._read()[_INDEX].body.replace(_TOKEN_PLACE, token.encode())
        return web.Response(
            body=body,
            headers={**HEADERS, "Content-Type": _TYPES[".html"], "Cache-Control": "no-store"},
        )

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The file that a request names; None if there is no such file."""
        file = self._read().get(request.path.removeprefix(FILES_PATH))
        if file is None or file.content_type == _TYPES[".html"]:
            return None
        headers = {
            **HEADERS,
            "Content-Type": file.content_type,
            "Cache-Control": "no-cache",
            "ETag": file.tag,
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=file.body, headers=headers)
        return web.Response(body=file.packed, headers={**headers, "Content-Encoding": "gzip"})

    def _read(self) -> dict[str, _PageFile]:
        if not self._files:
            self._files = {
                path.relative_to(_HERE).as_posix(): _file(path)
                for folder in _FOLDERS
                for path in sorted((_HERE / folder).iterdir())
                if path.suffix in _TYPES
            }
        return self._files


def _file(path: Path) -> _PageFile:
    body = path.read_bytes()
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    return _PageFile(_TYPES[path.suffix], body, gzip.compress(body, mtime=0), tag)
