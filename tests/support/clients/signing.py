"""Signatures made as AWS's guide tells it, by no code of the server's."""

from __future__ import annotations

import hmac
from hashlib import sha256


def signed_by_hand(
    headers: dict[str, str], digest: str, stamp: str, key: tuple[str, str], query: str = ""
) -> dict[str, str]:
    """These headers of a POST, all in lower case and signed, with their signature.

    ``digest`` is what is signed as the body's, ``stamp`` the time, ``query`` in canonical form.
    Texts are bytes, as Latin-1, without needless white space.
    """
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"POST\n/\n{query}\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/eu-west-1/dynamodb/aws4_request"
    hashed = sha256(canonical.encode("latin-1")).hexdigest()
    made = f"AWS4{key[1]}".encode()
    for element in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"]:
        made = hmac.digest(made, element.encode(), "sha256")
    told = f"Credential={key[0]}/{scope},SignedHeaders={names},Signature={made.hex()}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {told}"}
