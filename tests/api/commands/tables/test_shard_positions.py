"""Positions in the shards of a stream, with shards that end, split and are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.api.commands.tables.shard_positions import (
    RecordsDeleted,
    adopt,
    first_positions,
    readable,
)


def shard(shard_id: str, parent_id: str | None = None, *, closed: bool = False) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": f"{shard_id}-1"}
    if closed:
        numbers["EndingSequenceNumber"] = f"{shard_id}-9"
    listed: dict[str, Any] = {"ShardId": shard_id, "SequenceNumberRange": numbers}
    return listed if parent_id is None else {**listed, "ParentShardId": parent_id}


def readable_ids(positions: Any) -> list[str]:
    return [position.shard_id for position in readable(positions)]


def test_closed_shards_have_ended_for_a_copy_that_starts():
    positions = first_positions([shard("a", closed=True), shard("b", "a")])
    assert readable_ids(positions) == ["b"]


def test_a_position_starts_at_the_first_number_and_continues_after_a_record():
    (position,) = first_positions([shard("a")]).values()
    assert position.iterator_request("arn")["ShardIteratorType"] == "AT_SEQUENCE_NUMBER"
    assert position.iterator_request("arn")["SequenceNumber"] == "a-1"
    position.advance("a-5")
    assert position.iterator_request("arn") == {
        "StreamArn": "arn",
        "ShardId": "a",
        "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
        "SequenceNumber": "a-5",
    }


def test_children_are_read_after_their_parent_has_ended():
    positions = first_positions([shard("a")])
    adopt(positions, [shard("a", closed=True), shard("b", "a"), shard("c", "a")])
    assert readable_ids(positions) == ["a"]
    positions["a"].has_ended = True
    assert readable_ids(positions) == ["b", "c"]


def test_an_ended_shard_that_is_deleted_is_forgotten_with_its_children_kept():
    positions = first_positions([shard("a", closed=True), shard("b", "a")])
    adopt(positions, [shard("b", "a")])
    assert list(positions) == ["b"]
    assert readable_ids(positions) == ["b"]


def test_an_unread_shard_that_is_deleted_is_a_gap():
    positions = first_positions([shard("a")])
    with pytest.raises(RecordsDeleted):
        adopt(positions, [shard("b")])


def test_a_shard_whose_unknown_parent_was_deleted_is_a_gap():
    positions = first_positions([shard("a", closed=True)])
    with pytest.raises(RecordsDeleted):
        adopt(positions, [shard("a", closed=True), shard("c", "b")])
