"""A client that signs for any region with any key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.support.clients.clients import (
    AUTHORIZATION,
    REGION,
    STREAMS_TARGET_PREFIX,
    TARGET_PREFIX,
    Answer,
    WireClient,
)


class RegionalClient(WireClient):
    """A wire client of one region and access key."""

    def __init__(
        self,
        endpoint: str,
        region: str = REGION,
        access_key_id: str = "test",
        target_prefix: str = TARGET_PREFIX,
    ) -> None:
        super().__init__(endpoint, target_prefix)
        self.region = region
        self._authorization = AUTHORIZATION.replace("/us-east-1/", f"/{region}/").replace(
            "Credential=test/", f"Credential={access_key_id}/"
        )

    def send(
        self,
        operation: str,
        body: bytes | str | dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request with this region and access key; the answer may be an error."""
        return super().send(
            operation, body, {"Authorization": self._authorization, **(headers or {})}
        )


@contextmanager
def regional_clients(endpoint: str, *regions: str) -> Iterator[list[RegionalClient]]:
    """A client of each region."""
    clients = [RegionalClient(endpoint, region) for region in regions]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


@contextmanager
def streams_client(endpoint: str, region: str) -> Iterator[RegionalClient]:
    """A client of DynamoDB Streams in a region."""
    client = RegionalClient(endpoint, region, target_prefix=STREAMS_TARGET_PREFIX)
    with closing(client):
        yield client
