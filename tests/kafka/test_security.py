"""Publishing to a broker that requires a user name and a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dynactor.streams.kafka.aiokafka_broker import Kafka
from dynactor.streams.kafka.broker import BrokerRefused, BrokerSettings, Topic
from tests.support.clients.clients import WireClient
from tests.support.kafka.kafka_broker import KafkaBroker, running_broker
from tests.support.kafka.kafka_server import kafka_options, wait_published, wait_until
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition, wait_until_active

USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="its own" user_admin="its own" user_dynactor="secret";'
)


@pytest.fixture(scope="module")
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    settings = {
        "listener_security_protocol_map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT,BEHIND:PLAINTEXT"
        ),
        "sasl_enabled_mechanisms": "PLAIN",
        "sasl_mechanism_inter_broker_protocol": "PLAIN",
        "listener_name_plaintext_plain_sasl_jaas_config": USERS,
    }
    with running_broker(tmp_path_factory.mktemp("strict"), **settings) as broker:
        yield broker


def kafka(broker: KafkaBroker, **settings) -> Kafka:
    given = {"sasl_username": "dynactor", "sasl_password": "secret", **settings}
    return Kafka(
        BrokerSettings((broker.bootstrap_servers,), security_protocol="SASL_PLAINTEXT", **given)
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sasl_password": "wrong"}, "Invalid username or password"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "UnsupportedSaslMechanism"),
    ],
)
async def test_a_refused_login_is_reported_with_its_reason(
    strict_broker: KafkaBroker, settings, told: str
):
    broker = kafka(strict_broker, **settings)
    with pytest.raises(BrokerRefused, match=told):
        await broker.ensure_topic(Topic("topic", 1, 1))
    with pytest.raises(BrokerRefused, match=told):
        await broker.open_publisher()


def test_a_server_publishes_with_a_password_from_a_file(strict_broker: KafkaBroker, tmp_path: Path):
    password = tmp_path / "password"
    password.write_text("secret\n")
    options = kafka_options(
        strict_broker,
        *("--kafka-security-protocol", "SASL_PLAINTEXT"),
        *("--kafka-sasl-username", "dynactor"),
        *("--kafka-sasl-password-file", str(password)),
    )
    with running_server(*options) as server, closing(WireClient(server.endpoint)) as call:
        call("CreateTable", definition("pk:S", name="Published"))
        wait_until_active(call, "Published")
        call("PutItem", {"TableName": "Published", "Item": {"pk": {"S": "a"}}})
        wait_published(server, "Published")
        assert "secret" not in server.log


def test_a_server_with_a_wrong_password_serves_and_logs_the_error_once(strict_broker: KafkaBroker):
    options = kafka_options(
        strict_broker,
        *("--kafka-security-protocol", "SASL_PLAINTEXT"),
        *("--kafka-sasl-username", "dynactor", "--kafka-sasl-password", "wrong"),
    )
    with running_server(*options) as server, closing(WireClient(server.endpoint)) as call:
        call("CreateTable", definition("pk:S", name="Refused"))
        wait_until_active(call, "Refused")
        call("PutItem", {"TableName": "Refused", "Item": {"pk": {"S": "a"}}})
        wait_until(lambda: "relay_blocked" in server.log, "it says so")
        assert "Invalid username or password" in server.log
        assert server.stop() == 0
        assert server.log.count("relay_blocked") == 1
