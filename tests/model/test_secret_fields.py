"""The text of settings shows no secret, because it may be logged."""

from __future__ import annotations

import pytest

from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.api.keys.key_settings import KeySettings
from dynactor.api.nodes.node_settings import NodeSettings
from dynactor.api.options.server_settings import ServerSettings
from dynactor.streams.kafka.broker import BrokerSettings


@pytest.mark.parametrize(
    "settings",
    [
        KeySettings(secret="hidden"),
        NodeSettings(secret="hidden"),
        StoreSettings(url="postgresql://user:hidden@host/name", read_url="hidden"),
        BrokerSettings(sasl_password="hidden"),
        CallerRules("hidden", "hidden"),
        ServerSettings(keys=KeySettings(secret="hidden")),
    ],
    ids=lambda settings: type(settings).__name__,
)
def test_the_text_of_settings_shows_no_secret(settings: object) -> None:
    assert "hidden" not in repr(settings)
    assert type(settings).__name__ in repr(settings)
