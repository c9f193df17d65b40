"""The access of web pages through a browser: checks of the headers Host and Origin.

A web page can make a browser send requests to 127.0.0.1, also under a domain name that the page's
owner controls (DNS rebinding). A server on loopback therefore accepts only host names that no such
owner can have. Pages of another origin can read answers only if the origin is configured.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from dynactor.api.access import access_explanation
from dynactor.api.answers import explain

_EXPLANATIONS: Final = f"{explain.RESPONSE_HEADER}, {access_explanation.RESPONSE_HEADER}"
_PREFLIGHT_SECONDS = 172_800
_ANY = "*"
# RFC 3986, 3.2.2 and 3.2.3: an IPv6 address in brackets or a name, and perhaps a port.
_HOST: Final = re.compile(
    r"(?:\[(?P<address>[^\[\]]+)\]|(?P<name>[^:\[\]]+))(?::[0-9]*)?", re.ASCII
)


_NAME: Final = re.compile(r"[a-z0-9._-]+", re.ASCII)


class Access(Struct, frozen=True):
    """The names and origins that the configuration allows.

    ``host_names`` are allowed in addition to IP addresses and localhost; None allows every name.
    ``origins`` are the origins of web pages that may read answers; ``*`` stands for all.
    """

    host_names: frozenset[str] | None = frozenset()
    origins: frozenset[str] = frozenset()

    def allows_host(self, host: str) -> bool:
        """Whether a Host header is allowed. Browsers always send one, so a missing one is."""
        if self.host_names is None or not host:
            return True
        name = _host_name(host)
        return _is_local(name) or name in self.host_names

    def allows_origin(self, origin: str) -> bool:
        """Whether a web page of that origin may read answers."""
        return origin in self.origins or _ANY in self.origins

    def cross_origin_headers(self, origin: str) -> dict[str, str]:
        """The headers that let a page read an answer; none for an origin that is not allowed.

        If every origin is allowed, the answer names none of them, as on AWS.
        """
        if not origin or not self.allows_origin(origin):
            return {}
        exposed = f"x-amzn-RequestId, x-amz-crc32, {_EXPLANATIONS}"
        if _ANY in self.origins:
            return {"Access-Control-Allow-Origin": _ANY, "Access-Control-Expose-Headers": exposed}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": exposed,
            "Vary": "Origin",
        }


def preflight_headers(requested_method: str, requested_headers: str) -> dict[str, str]:
    """The headers that allow a request of a page, in addition to ``cross_origin_headers``.

    They repeat the method and the headers that the page asks for, as on AWS.
    """
    asked = {
        "Access-Control-Allow-Methods": requested_method,
        "Access-Control-Allow-Headers": requested_headers,
    }
    return {
        **{name: text for name, text in asked.items() if text},
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
    }


def host_refusal(host: str) -> str:
    """The message for a Host header that is not allowed, with the option that would allow it."""
    name = _host_name(host)
    advice = f"; allow it by --allowed-hosts {name}" if _NAME.fullmatch(name) else ""
    return f"Host {host!r} is neither localhost nor an IP address{advice}"


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    """A Host header without its port; an IPv6 address without its brackets.

    The result is empty for a header that is not a host and a port.
    """
    found = _HOST.fullmatch(host)
    if found is None:
        return ""
    return found["address"] or found["name"].rstrip(".").lower()


@lru_cache(maxsize=256)
def _is_local(name: str) -> bool:
    # Names under localhost never leave the machine (RFC 6761).
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
