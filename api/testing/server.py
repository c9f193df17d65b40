"""A running server in the hands of a test: addresses, credentials, the clock, the end."""

from __future__ import annotations

from typing import Any

from dynactor.api.testing import aws_environment
from dynactor.api.testing.admin_calls import call_admin
from dynactor.api.testing.server_process import ServerProcess


class ServerClock:
    """The time that the server's data goes by. It never goes back, except by a reset."""

    def __init__(self, admin_endpoint: str) -> None:
        self._admin_endpoint = admin_endpoint

    @property
    def now(self) -> float:
        """The time in epoch seconds."""
        return self._time(call_admin(self._admin_endpoint, "GET", "/clock"))

    def step(self, seconds: float) -> float:
        """Move the clock forward; returns its time in epoch seconds."""
        return self._time(
            call_admin(self._admin_endpoint, "POST", "/clock/step", {"seconds": seconds})
        )

    def set(self, now: float | str | None = None, *, speed: float | None = None) -> float:
        """Set the time, in epoch seconds or ISO 8601, the speed, or both; returns the time.

        The speed is in seconds of the clock in a real second: 1 is real time, with 0 the clock
        stands still.
        """
        given = {"now": now, "speed": speed}
        setting = {name: value for name, value in given.items() if value is not None}
        return self._time(call_admin(self._admin_endpoint, "PUT", "/clock", setting))

    @staticmethod
    def _time(answer: Any) -> float:
        time: float = answer["now"]
        return time


class Server:
    """A server that a test uses. It needs an option ``--virtual-clock`` to have a ``clock``."""

    def __init__(self, process: ServerProcess, region: str = aws_environment.REGION) -> None:
        """``process`` is ready."""
        self._process = process
        self.region = region
        self.endpoint = process.endpoint
        self.admin_endpoint = process.admin_endpoint
        self.clock = ServerClock(self.admin_endpoint)

    @property
    def process_id(self) -> int:
        """The id of the server's process."""
        return self._process.process_id

    @property
    def credentials(self) -> dict[str, str]:
        """An access key, as arguments of boto3's sessions and clients."""
        return {
            "aws_access_key_id": aws_environment.ACCESS_KEY_ID,
            "aws_secret_access_key": aws_environment.SECRET_ACCESS_KEY,
        }

    @property
    def client_arguments(self) -> dict[str, str]:
        """Arguments of ``boto3.client`` and ``boto3.resource``: endpoint, region, credentials."""
        return {"endpoint_url": self.endpoint, "region_name": self.region, **self.credentials}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which any AWS SDK finds the server."""
        return {
            **aws_environment.credentials(self.region),
            **aws_environment.endpoints(self.endpoint),
        }

    @property
    def log(self) -> str:
        """Everything that the server has logged."""
        return self._process.log

    def stop(self) -> None:
        """Stop the server; its data is gone. Later calls do nothing."""
        self._process.stop()
