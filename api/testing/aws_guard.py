"""Keeps botocore and aiobotocore from sending requests to AWS."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

_AWS_DOMAINS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".aws.amazon.com")
# The class with which each library sends requests. Stubs and moto's mocks do not call this class.
_SENDERS: Final = (
    ("botocore", "botocore.httpsession", "URLLib3Session"),
    ("aiobotocore", "aiobotocore.httpsession", "AIOHTTPSession"),
)
# Hosts of DynamoDB, of an account's own endpoint, and of DynamoDB Streams.
_DYNAMODB: Final = ("dynamodb.", "dynamodb-fips.", ".ddb.", ".ddb-fips.")


class ReachesAWS(RuntimeError):
    """A request would have been sent to AWS."""


class AWSGuard:
    """Makes requests to hosts of AWS raise ``ReachesAWS`` while it is installed."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type[Any], Callable[..., Any]]] = []

    def install(self) -> None:
        """Guard the installed libraries."""
        for package, module, name in _SENDERS:
            if find_spec(package) is not None:
                self._guard(getattr(import_module(module), name))

    def remove(self) -> None:
        """Allow requests again."""
        while self._replaced:
            sender, send = self._replaced.pop()
            sender.send = send

    def _guard(self, sender: type[Any]) -> None:
        original = sender.send

        def send(session: Any, request: Any) -> Any:
            refuse_aws(request.url)
            return original(session, request)

        sender.send = send
        self._replaced.append((sender, original))


def refuse_aws(url: str) -> None:
    """Refuse a request to a host of AWS.

    Raises:
        ReachesAWS: the URL's host belongs to AWS.
    """
    host = urlsplit(url).hostname or ""
    if not host.endswith(_AWS_DOMAINS):
        return
    if any(name in host for name in _DYNAMODB):
        raise ReachesAWS(
            f"A client of DynamoDB called {host}: it was made before the server was started, or "
            "with an explicit endpoint. Make clients in functions or fixtures, or set "
            'dynactor_start = "run" in the configuration of pytest, which starts the server before '
            "the tests are imported"
        )
    raise ReachesAWS(
        f"A test called {host}, and dynactor's plugin blocks requests to AWS. dynactor serves only "
        "DynamoDB: mock the other service, or set dynactor_allow_aws = true in the configuration "
        "of pytest"
    )
