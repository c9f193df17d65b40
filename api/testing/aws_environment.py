"""Environment variables that point AWS SDKs to a server, and their restoration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

ACCESS_KEY_ID: Final = "testing"
SECRET_ACCESS_KEY: Final = "testing"  # noqa: S105 - the server accepts any
REGION: Final = "us-east-1"

# Variables that would select other credentials, or make SDKs ignore the endpoint.
_REMOVED: Final = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
)


def credentials(region: str = REGION) -> dict[str, str]:
    """Variables that hide real credentials and the user's configuration from SDKs."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        # A profile may name other endpoints, or make SDKs ignore those of the environment.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        # Without credentials an SDK would ask the metadata service of an EC2 instance.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def endpoints(endpoint: str) -> dict[str, str]:
    """Variables that point clients of DynamoDB and DynamoDB Streams to ``endpoint``."""
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": endpoint,
    }


class ChangedEnvironment:
    """Changes of ``os.environ`` that can be undone.

    Invariant: ``restore`` restores the values from before the first change of each variable.
    """

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def set(self, variables: Mapping[str, str]) -> None:
        """Set these variables, and remove those that would override them."""
        for name in _REMOVED:
            self._remember(name)
            os.environ.pop(name, None)
        for name, value in variables.items():
            self._remember(name)
            os.environ[name] = value

    def restore(self) -> None:
        """Restore the environment."""
        before, self._before = self._before, {}
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def _remember(self, name: str) -> None:
        self._before.setdefault(name, os.environ.get(name))
