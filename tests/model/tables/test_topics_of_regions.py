"""The names of Kafka topics with separate regions."""

from __future__ import annotations

from itertools import combinations

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.tables.destination_rules import (
    check_home_topic,
    check_topic,
    default_topic,
    topic_namespace,
)

LONG = "k" * 128


def test_a_topic_of_another_region_begins_with_its_name():
    assert topic_namespace("us-west-2") == "region.us-west-2."
    assert topic_namespace("us-west-2", "AKIA") == "region.us-west-2.AKIA."


def test_a_key_with_characters_that_kafka_refuses_is_replaced_by_its_digest():
    for key_id in ("a.b", "a/b", "ключ", LONG, "_x"):
        check_topic(topic_namespace("us-west-2", key_id) + "orders")
    assert topic_namespace("us-west-2", "a.b") != topic_namespace("us-west-2", "a.c")


def test_no_two_regions_or_keys_share_a_topic():
    namespaces = [
        topic_namespace(region, key_id)
        for region in ("us-west-2", "us", "region")
        for key_id in ("", "us", "a", "a.b")
    ]
    for one, other in combinations(namespaces, 2):
        assert one != other
    # Dots in a table's name don't make its topic one of another region.
    assert not default_topic(topic_namespace("us") + "dynactor", "orders").startswith(
        topic_namespace("us-west-2")
    )


def test_the_default_region_refuses_a_topic_name_of_another_region():
    check_home_topic("orders")
    check_home_topic("us-west-2.orders")
    with pytest.raises(ValidationException):
        check_home_topic("region.us-west-2.orders")
