"""A server that publishes nothing pays nothing for it."""

from __future__ import annotations

import pytest

from tests.support.server import running_server


@pytest.mark.parametrize(
    ("options", "is_loaded"), [((), False), (("--kafka-bootstrap-servers", "127.0.0.1:9"), True)]
)
def test_kafkas_client_is_loaded_where_there_is_a_broker(options: tuple[str, ...], is_loaded: bool):
    # Python then tells on standard error what it imports.
    with running_server(*options, environment={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        assert server.stop() == 0
        assert "import time:" in server.log
        assert ("aiokafka" in server.log) == is_loaded
