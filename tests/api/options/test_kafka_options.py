"""The options for Kafka, and their effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.options.read_settings import read_settings
from dynactor.model.configuration_error import ConfigurationError
from dynactor.streams.kafka.broker import BrokerSettings
from dynactor.streams.kafka.message import KafkaForm
from tests.support.servers.server import running_server
from tests.support.tables.ttl import wait_until


def test_without_servers_there_is_no_broker():
    assert read_settings().broker == BrokerSettings()


@pytest.mark.parametrize(
    "given", [("a:1,b:2",), ("a:1", "b:2"), ("a:1, b:2",)], ids=["comma", "two", "blank"]
)
def test_servers_may_be_given_in_one_option_or_in_several(given: tuple[str, ...]):
    settings = read_settings(kafka_bootstrap_servers=given).broker
    assert settings == BrokerSettings(("a:1", "b:2"))


@pytest.mark.parametrize("server", ["a", "a:", ":9092", "a:b", "a:65536", "http://a:1"])
def test_a_server_needs_a_host_and_a_port(server: str):
    with pytest.raises(ConfigurationError, match="give host:port"):
        read_settings(kafka_bootstrap_servers=(server,))


def test_the_record_format_is_set_by_the_options():
    settings = read_settings(
        kafka_bootstrap_servers=("a:1",),
        kafka_format="debezium",
        kafka_key="collection",
        kafka_tombstones=False,
        kafka_cloud_events=True,
        kafka_debezium_images="plain",
        kafka_debezium_schema=True,
    )
    assert settings.database.relays.form == KafkaForm(
        format="debezium",
        key="collection",
        tombstones=False,
        cloud_events=True,
        plain_images=True,
        schema=True,
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kafka_all_tables": True}, "^--kafka-all-tables needs --kafka-bootstrap-servers$"),
        ({"kafka_topic_prefix": "shop"}, "^--kafka-topic-prefix needs --kafka-bootstrap-servers$"),
        ({"kafka_retention_seconds": 5.0, "kafka_bootstrap_servers": (" , ",)}, "needs --kafka-b"),
        (
            {"kafka_delivery": "exactly-once", "kafka_partitions": 3},
            "^--kafka-partitions, --kafka-delivery need --kafka-bootstrap-servers$",
        ),
        ({"kafka_partitions": 0}, "at least 1"),
        ({"kafka_replication": 0}, "at least 1"),
        ({"kafka_tombstones": True, "kafka_key": "collection"}, "all items of an item collection"),
        ({"kafka_topic_prefix": "a b"}, "--kafka-topic-prefix"),
        ({"kafka_retention_bytes": 0}, "--kafka-retention-bytes"),
        ({"kafka_retention_seconds": 0.0}, "--kafka-retention-seconds"),
        ({"kafka_security_protocol": "SASL_SSL"}, "needs --kafka-sasl-username"),
        (
            {"kafka_sasl_password": "a", "kafka_sasl_password_file": Path("b")},
            "give one of them",
        ),
        ({"kafka_retention_seconds": float("nan")}, "--kafka-retention-seconds"),
        ({"kafka_sasl_username": "a"}, "SASL_SSL or SASL_PLAINTEXT"),
        ({"kafka_sasl_password_file": Path("b")}, "SASL_SSL or SASL_PLAINTEXT"),
        ({"kafka_ssl_cafile": Path("b")}, "SSL or SASL_SSL"),
        ({"kafka_debezium_schema": True}, "--kafka-format debezium"),
        ({"kafka_debezium_images": "plain"}, "--kafka-format debezium"),
    ],
)
def test_contradictory_options_are_refused(options, told: str):
    with pytest.raises(ConfigurationError, match=told):
        read_settings(**options)


def test_a_password_is_read_from_its_file(tmp_path: Path):
    file = tmp_path / "password"
    file.write_text("secret\n")
    settings = read_settings(
        kafka_bootstrap_servers=("a:1",),
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_sasl_mechanism="SCRAM-SHA-512",
        kafka_sasl_username="dynactor",
        kafka_sasl_password_file=file,
    )
    assert settings.broker == BrokerSettings(
        ("a:1",),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="dynactor",
        sasl_password="secret",
    )


def test_a_binary_file_is_reported(tmp_path: Path):
    file = tmp_path / "password"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_settings(
            kafka_bootstrap_servers=("a:1",),
            kafka_security_protocol="SASL_SSL",
            kafka_sasl_username="dynactor",
            kafka_sasl_password_file=file,
        )


def test_a_password_is_never_shown():
    settings = read_settings(
        kafka_bootstrap_servers=("a:1",),
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_sasl_username="dynactor",
        kafka_sasl_password="secret",
    )
    assert "secret" not in repr(settings)
    assert "secret" not in repr(settings.broker)


def test_a_server_without_its_broker_says_so_at_its_start():
    with running_server("--kafka-bootstrap-servers", "127.0.0.1:1", "--kafka-all-tables") as server:
        wait_until(lambda: "broker_not_reached" in server.log)
        assert "127.0.0.1:1: " in server.log
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_a_missing_file_is_reported_at_start(tmp_path: Path):
    with pytest.raises(AssertionError, match=r"TLS file"):  # noqa: SIM117 - which one fails
        with running_server(
            "--kafka-bootstrap-servers",
            "127.0.0.1:1",
            "--kafka-security-protocol",
            "SSL",
            "--kafka-ssl-cafile",
            str(tmp_path / "missing.pem"),
        ):
            pass
