"""Computes Signature Version 4 according to AWS's guide, independently of the server's code."""

from __future__ import annotations

import hmac
from hashlib import sha256


def signed_by_hand(
    headers: dict[str, str], digest: str, stamp: str, key: tuple[str, str], query: str = ""
) -> dict[str, str]:
    """The headers of a POST, with an authorization header that signs all of them.

    Names of headers are in lower case. ``digest`` is the digest of the body, ``stamp`` the time,
    ``query`` the canonical query string. Texts are encoded as Latin-1.
    """
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"POST\n/\n{query}\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/eu-west-1/dynamodb/aws4_request"
    hashed = sha256(canonical.encode("latin-1")).hexdigest()
    made = f"AWS4{key[1]}".encode()
    for element in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"]:
        made = hmac.digest(made, element.encode(), "sha256")
    fields = f"Credential={key[0]}/{scope},SignedHeaders={names},Signature={made.hex()}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {fields}"}
