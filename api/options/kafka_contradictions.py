"""Checks for options of Kafka that contradict each other, or have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynactor.api.options.option_list import options
from dynactor.model.configuration_error import ConfigurationError
from dynactor.streams.kafka.broker import BrokerSettings
from dynactor.streams.kafka.message import KafkaForm


def check_kafka(broker: BrokerSettings, form: KafkaForm, given: Mapping[str, Any]) -> None:
    """Refuse contradictions, and options without effect.

    A password without effect is refused because its user expects a secure connection. An option
    that is given with its default value counts as missing. The message of ``ConfigurationError``
    describes the fix.
    """
    has_password = broker.sasl_password is not None or broker.sasl_password_file is not None
    if broker.sasl_password is not None and broker.sasl_password_file is not None:
        raise ConfigurationError(
            "--kafka-sasl-password and --kafka-sasl-password-file: give one of them"
        )
    has_sasl = broker.security_protocol.startswith("SASL")
    if has_sasl and (broker.sasl_username is None or not has_password):
        raise ConfigurationError(
            f"--kafka-security-protocol {broker.security_protocol} needs "
            "--kafka-sasl-username and --kafka-sasl-password-file"
        )
    if not has_sasl and (broker.sasl_username is not None or has_password):
        raise ConfigurationError(
            "--kafka-sasl-username and its password are for --kafka-security-protocol "
            "SASL_SSL or SASL_PLAINTEXT"
        )
    files = (broker.ssl_ca_file, broker.ssl_certificate_file, broker.ssl_key_file)
    if not broker.security_protocol.endswith("SSL") and any(files):
        raise ConfigurationError(
            "--kafka-ssl-cafile, --kafka-ssl-certfile and --kafka-ssl-keyfile are for "
            "--kafka-security-protocol SSL or SASL_SSL"
        )
    if (form.schema or form.plain_images) and form.format != "debezium":
        raise ConfigurationError(
            "--kafka-debezium-schema and --kafka-debezium-images are for --kafka-format debezium"
        )
    if not broker.bootstrap_servers:
        _refuse_without_servers(given)


def _refuse_without_servers(given: Mapping[str, Any]) -> None:
    names = [
        option.name
        for option, field in options()
        if option.name.startswith("--kafka-")
        and option.key != "kafka_bootstrap_servers"
        and given.get(option.key, field.default) != field.default
    ]
    if names:
        verb = "needs" if len(names) == 1 else "need"
        raise ConfigurationError(f"{', '.join(names)} {verb} --kafka-bootstrap-servers")
