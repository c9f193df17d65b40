"""The access key and the region of a signature, which select the tables of separate regions."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from dynactor.model.errors import IncompleteSignatureException, InvalidSignatureException

_IN_HEADER: Final = re.compile(r"Credential=([^,]*)")
_IN_QUERY: Final = re.compile(r"X-Amz-Credential=([^&]*)")
_SCOPE: Final = re.compile(r"([^/\x00]{1,512})/[0-9]{8}/([^/]*)/[^/]*/[^/]*/?\Z")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")


def credential_scope(authorization: str, query: str) -> tuple[str, str]:
    """The region and the access key id of a request; the signature is verified elsewhere.

    Raises ``IncompleteSignatureException``, or ``InvalidSignatureException`` for the region.
    """
    if authorization:
        given = _IN_HEADER.search(authorization)
        credential = given[1].strip() if given else ""
    else:
        given = _IN_QUERY.search(query)
        credential = unquote(given[1]) if given else ""
    scope = _SCOPE.match(credential)
    if scope is None:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            f"keyid/date/region/service/term, got '{credential}'"
        )
    if _REGION.match(scope[2]) is None:
        raise InvalidSignatureException(
            f"Credential should be scoped to a valid region, not '{scope[2]}'. "
        )
    return scope[2], scope[1]
