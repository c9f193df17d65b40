"""Contributor Insights: enabling and disabling, the status, and the names of the rules."""

from __future__ import annotations

import re

import pytest
from msgspec import msgpack, structs

from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import ContributorInsights, GlobalIndex, TableDefinition
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.contributor_insights import (
    changed,
    insights_status,
    resource_insights,
    rule_names,
)
from dynactor.storage import catalog
from dynactor.storage.catalog import PartitionRange, TableRecord
from tests.support.databases.databases import table_definition

ALL = "ACCESSED_AND_THROTTLED_KEYS"
NOW = 1_576_629_651.52
SIMPLE, COMPOSITE = (
    KeySchema((KeyAttribute("a", "S"),)),
    KeySchema((KeyAttribute("a", "S"),), (KeyAttribute("b", "S"),)),
)
BY_POSTS = "by_posts"


def indexed() -> TableDefinition:
    schema = KeySchema((KeyAttribute("posts", "N"),))
    indexes = (
        GlobalIndex(IndexDefinition(number, name, schema, Projection("ALL")))
        for number, name in ((1, BY_POSTS), (2, "other"))
    )
    return structs.replace(table_definition(), global_indexes=tuple(indexes))


def test_contributor_insights_are_enabled_for_a_table_or_an_index_separately():
    table = indexed()

    of_table = changed(table, None, None, NOW, enabled=True)
    of_index = changed(table, BY_POSTS, "THROTTLED_KEYS", NOW, enabled=True)

    assert of_table.contributor_insights == ContributorInsights(True, ALL, NOW)
    assert resource_insights(of_table, BY_POSTS) is None
    assert of_index.contributor_insights is None
    assert resource_insights(of_index, BY_POSTS) == ContributorInsights(True, "THROTTLED_KEYS", NOW)
    assert resource_insights(of_index, "other") is None


def test_an_unnecessary_change_changes_nothing():
    on = changed(indexed(), None, "THROTTLED_KEYS", NOW, enabled=True)

    assert changed(on, None, "THROTTLED_KEYS", NOW + 1, enabled=True) is on
    # A request without a mode keeps the earlier mode.
    assert changed(on, None, None, NOW + 1, enabled=True) is on
    assert changed(on, None, ALL, NOW + 1, enabled=True).contributor_insights == (
        ContributorInsights(True, ALL, NOW + 1)
    )
    never = indexed()
    assert changed(never, None, None, NOW, enabled=False) is never


def test_a_missing_index_is_reported():
    with pytest.raises(ResourceNotFoundException, match="Index: by_votes of table: Thread"):
        changed(indexed(), "by_votes", None, NOW, enabled=True)


@pytest.mark.parametrize(
    ("enabled", "after_seconds", "status"),
    [
        (True, 1.9, "ENABLING"),
        (True, 2, "ENABLED"),
        (False, 1.9, "DISABLING"),
        (False, 2, "DISABLED"),
    ],
)
def test_a_change_of_status_takes_the_configured_time(enabled, after_seconds, status):
    insights = ContributorInsights(enabled, ALL, NOW)

    assert insights_status(insights, NOW + after_seconds, 2) == status


def test_a_table_without_a_setting_is_disabled():
    assert insights_status(None, NOW, 2) == "DISABLED"
    assert rule_names("Music", COMPOSITE, None) == []
    assert rule_names("Music", COMPOSITE, ContributorInsights(False, ALL, NOW)) == []


def test_rules_are_named_as_dynamodb_names_them():
    names = rule_names("MusicCollection", COMPOSITE, ContributorInsights(True, ALL, NOW))

    assert names == [
        f"DynamoDBContributorInsights-{kind}-MusicCollection-1576629651520"
        for kind in ("PKC", "SKC", "PKT", "SKT")
    ]


@pytest.mark.parametrize(
    ("schema", "mode", "kinds"),
    [
        (SIMPLE, ALL, ["PKC", "PKT"]),
        (COMPOSITE, "THROTTLED_KEYS", ["PKT", "SKT"]),
        (SIMPLE, "THROTTLED_KEYS", ["PKT"]),
    ],
)
def test_each_recorded_kind_of_key_has_its_rules(schema, mode, kinds):
    names = rule_names("Music", schema, ContributorInsights(True, mode, NOW))

    assert [name.split("-")[1] for name in names] == kinds


def test_the_rules_of_a_table_with_a_long_name_have_valid_names():
    for name in rule_names("t" * 255, COMPOSITE, ContributorInsights(True, ALL, NOW)):
        # botocore's service model, "ContributorInsightsRule".
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9\-_.]{0,126}[A-Za-z0-9]", name)
        assert name.endswith("-1576629651520")


def test_the_table_record_of_an_earlier_version_is_read():
    record = TableRecord(indexed(), (PartitionRange(1, b""),), {1: (PartitionRange(2, b""),)})
    old = msgpack.decode(catalog.encode_record(record))
    del old["definition"]["contributor_insights"]
    del old["definition"]["global_indexes"][0]["contributor_insights"]

    assert msgpack.decode(msgpack.encode(old), type=TableRecord) == record
