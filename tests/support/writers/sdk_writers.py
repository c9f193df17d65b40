"""Clients that write by boto3 with its standard retries, over faults they should not notice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, Final

import boto3
from botocore.config import Config

from tests.support.clients.clients import SDK_ARGUMENTS, WireClient
from tests.support.tables.tables import definition, unique_name

_WRITERS: Final = 3


class SdkWriters:
    """Threads that put items by boto3 with its standard retries."""

    def __init__(self, endpoint: str) -> None:
        self.failures: list[str] = []
        # The duration of the slowest request, with its retries.
        self.slowest_seconds = 0.0
        self._endpoint = endpoint
        self._table = unique_name("threads")
        self._written: list[str] = []
        self._is_stopping = False
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(_WRITERS)
        ]
        self._changed = threading.Condition()

    def start(self) -> None:
        """Create the table and start all threads."""
        with closing(WireClient(self._endpoint)) as wire:
            wire("CreateTable", definition("pk:S", name=self._table))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all threads after their present request."""
        self._is_stopping = True
        for thread in self._threads:
            thread.join()

    def wait_writes(self, number: int) -> None:
        """Wait until ``number`` more writes are acknowledged, or one has failed."""
        ends_at = monotonic() + 60
        with self._changed:
            enough = len(self._written) + number
            while len(self._written) < enough and not self.failures and monotonic() < ends_at:
                self._changed.wait(1)

    def missing(self) -> list[str]:
        """The acknowledged items that are not there."""
        with closing(self._client()) as client:
            pages = client.get_paginator("scan").paginate(TableName=self._table)
            found = {item["pk"]["S"] for page in pages for item in page["Items"]}
        return sorted(set(self._written) - found)

    def _client(self) -> Any:
        config = Config(retries={"mode": "standard"})
        return boto3.client("dynamodb", endpoint_url=self._endpoint, config=config, **SDK_ARGUMENTS)

    def _write(self, writer: int) -> None:
        with closing(self._client()) as client:
            number = 0
            while not self._is_stopping:
                number += 1
                key = f"{writer}.{number}"
                began = monotonic()
                try:
                    client.put_item(TableName=self._table, Item={"pk": {"S": key}})
                except Exception as error:  # noqa: BLE001 - any error is a failure of the test
                    self.failures.append(repr(error))
                with self._changed:
                    self.slowest_seconds = max(self.slowest_seconds, monotonic() - began)
                    self._written.append(key)
                    self._changed.notify_all()


@contextmanager
def sdk_writers(endpoint: str) -> Iterator[SdkWriters]:
    """Writers that run within the context."""
    writers = SdkWriters(endpoint)
    writers.start()
    try:
        yield writers
    finally:
        writers.stop()
