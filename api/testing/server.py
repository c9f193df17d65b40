"""A test's control of a running server: addresses, clock, settings, snapshots, reset."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dynactor.api.testing import aws_environment
from dynactor.api.testing.admin_calls import call_admin
from dynactor.api.testing.server_process import ServerProcess


class ServerClock:
    """The server's virtual clock. It never goes back, except by a reset."""

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

        The speed is in seconds of the clock per real second: 1 is real time, 0 stands still.
        """
        given = {"now": now, "speed": speed}
        setting = {name: value for name, value in given.items() if value is not None}
        return self._time(call_admin(self._admin_endpoint, "PUT", "/clock", setting))

    @staticmethod
    def _time(answer: Any) -> float:
        time: float = answer["now"]
        return time


class ServerSnapshots:
    """Copies of all data in the server's memory; at most 20."""

    def __init__(self, admin_endpoint: str) -> None:
        self._admin_endpoint = admin_endpoint

    @property
    def names(self) -> list[str]:
        """The names of the snapshots, in the order in which they were made."""
        answer = call_admin(self._admin_endpoint, "GET", "/snapshots")
        return [each["name"] for each in answer["snapshots"]]

    def make(self, name: str) -> None:
        """Keep a copy under a new name."""
        call_admin(self._admin_endpoint, "POST", "/snapshots", {"name": name})

    def restore(self, name: str) -> None:
        """Restore all data and the time of a copy."""
        call_admin(self._admin_endpoint, "POST", f"/snapshots/{quote(name)}/restore")

    def delete(self, name: str) -> None:
        """Delete a copy."""
        call_admin(self._admin_endpoint, "DELETE", f"/snapshots/{quote(name)}")


class ServerFaults:
    """Rules of injected faults. A reset removes all of them."""

    def __init__(self, admin_endpoint: str) -> None:
        self._admin_endpoint = admin_endpoint

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The rules, each with its ``id`` and its counts ``matched`` and ``injected``."""
        rules: list[dict[str, Any]] = call_admin(self._admin_endpoint, "GET", "/faults")["rules"]
        return rules

    def add(self, fault: str, **rule: Any) -> str:
        """Add a rule, and return its id: ``add("throttling", operation="PutItem", next=2)``."""
        added = call_admin(self._admin_endpoint, "POST", "/faults", {"fault": fault, **rule})
        rule_id: str = added["id"]
        return rule_id

    def injected(self, rule_id: str) -> int:
        """Number of requests in which a rule injected its fault."""
        return next(int(each["injected"]) for each in self.rules if each["id"] == rule_id)

    def remove(self, rule_id: str) -> None:
        """Remove a rule."""
        call_admin(self._admin_endpoint, "DELETE", f"/faults/{quote(rule_id)}")

    def clear(self) -> None:
        """Remove all rules."""
        call_admin(self._admin_endpoint, "DELETE", "/faults")


class Server:
    """A server that a test uses."""

    def __init__(self, process: ServerProcess, region: str = aws_environment.REGION) -> None:
        """``process`` must be ready."""
        self._process = process
        self.region = region
        self.endpoint = process.endpoint
        self.admin_endpoint = process.admin_endpoint
        self.clock = ServerClock(self.admin_endpoint)
        self.faults = ServerFaults(self.admin_endpoint)
        self.snapshots = ServerSnapshots(self.admin_endpoint)

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
        """Environment variables that point any AWS SDK to the server."""
        return {
            **aws_environment.credentials(self.region),
            **aws_environment.endpoints(self.endpoint),
        }

    @property
    def log(self) -> str:
        """Everything that the server has logged."""
        return self._process.log

    @property
    def settings(self) -> dict[str, Any]:
        """The options of ``dynactor serve`` that a test can change, by name."""
        settings: dict[str, Any] = call_admin(self.admin_endpoint, "GET", "/settings")
        return settings

    def change_settings(self, **settings: Any) -> None:
        """Change options of ``dynactor serve`` until the next reset; tables and items stay.

        Names as in ``settings``: ``change_settings(gsi_lag="fixed:1", throttling="enforce")``.
        """
        call_admin(self.admin_endpoint, "PATCH", "/settings", settings)

    @property
    def lag(self) -> str:
        """The lag of global indexes, in the form of ``--gsi-lag``. Can be set."""
        lag: str = self.settings["gsi_lag"]
        return lag

    @lag.setter
    def lag(self, lag: str) -> None:
        self.change_settings(gsi_lag=lag)

    @property
    def throttling(self) -> str:
        """The behavior above a table's capacity, in the form of ``--throttling``. Can be set."""
        throttling: str = self.settings["throttling"]
        return throttling

    @throttling.setter
    def throttling(self, throttling: str) -> None:
        self.change_settings(throttling=throttling)

    def reset(self) -> None:
        """Delete all data except snapshots; restore the clock and the settings of the start."""
        call_admin(self.admin_endpoint, "POST", "/reset")

    def stop(self) -> None:
        """Stop the server, which loses its data. Later calls do nothing."""
        self._process.stop()
