"""S39, S40, S48: local secondary indexes follow the writes to their table."""

from __future__ import annotations

import random

import pytest

from tests.rules.local_indexes.thread import (
    LAST_POST,
    key,
    put_all,
    query,
    texts,
    thread,
    thread_table,
)


def test_s39_an_index_follows_every_kind_of_write_to_its_table(client, threads, forum):
    """A thousand random writes; then the index has the entries of the table's items."""
    chance = random.Random(39)
    subjects = [f"s{n}" for n in range(12)]

    def random_thread() -> dict:
        return thread(
            forum,
            chance.choice(subjects),
            chance.choice([None, "1", "2", "3"]),
            **({"Replies": chance.choice("abc")} if chance.random() < 0.7 else {}),
        )

    def put() -> None:
        client.put_item(TableName=threads, Item=random_thread())

    def delete() -> None:
        client.delete_item(TableName=threads, Key=key(random_thread()))

    def update() -> None:
        item = random_thread()
        names = ("LastPostDateTime", "Replies")
        changed = [name for name in names if name in item]
        removed = [name for name in names if name not in item]
        expression = "".join(
            f" {verb} {', '.join(parts)}"
            for verb, parts in (
                ("SET", [f"{name} = :{name}" for name in changed]),
                ("REMOVE", removed),
            )
            if parts
        )
        values = {f":{name}": item[name] for name in changed}
        client.update_item(
            TableName=threads,
            Key=key(item),
            UpdateExpression=expression,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def batch() -> None:
        written = {item["Subject"]["S"]: item for item in (random_thread() for _ in range(6))}
        requests = [
            {"PutRequest": {"Item": item}}
            if chance.random() < 0.6
            else {"DeleteRequest": {"Key": key(item)}}
            for item in written.values()
        ]
        client.batch_write_item(RequestItems={threads: requests})

    for _ in range(1_000):
        chance.choice([put, put, update, update, delete, batch])()

    items = query(client, threads, forum, ConsistentRead=True)["Items"]
    entries = query(client, threads, forum, IndexName=LAST_POST, ConsistentRead=True)["Items"]
    in_index = [item for item in items if "LastPostDateTime" in item]
    assert 0 < len(in_index) < len(items)
    assert sorted(entries, key=by_subject) == sorted(in_index, key=by_subject)
    assert texts(entries, "LastPostDateTime") == sorted(texts(in_index, "LastPostDateTime"))


def by_subject(item: dict) -> str:
    return item["Subject"]["S"]


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
@pytest.mark.parametrize("operation", ["put_item", "update_item", "batch_write_item"])
def test_s40_an_index_key_of_another_type_refuses_the_write(client, threads, forum, operation):
    item = thread(forum, "a") | {"LastPostDateTime": {"N": "20150831"}}
    requests = {
        "put_item": {"TableName": threads, "Item": item},
        "update_item": {
            "TableName": threads,
            "Key": key(item),
            "UpdateExpression": "SET LastPostDateTime = :posted",
            "ExpressionAttributeValues": {":posted": item["LastPostDateTime"]},
        },
        "batch_write_item": {
            "RequestItems": {
                threads: [
                    {"PutRequest": {"Item": thread(forum, "b", "1")}},
                    {"PutRequest": {"Item": item}},
                ]
            }
        },
    }

    with pytest.raises(client.exceptions.ClientError) as refused:
        getattr(client, operation)(**requests[operation])

    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert "LastPostDateTime" in refused.value.response["Error"]["Message"]
    assert query(client, threads, forum, ConsistentRead=True)["Items"] == []


def test_s48_an_item_without_the_index_sort_key_has_no_entry(client, wire):
    with thread_table(wire) as name:
        put_all(client, name, [thread("EC2", "a"), thread("EC2", "b", "1"), thread("S3", "c")])

        entries = client.scan(TableName=name, IndexName=LAST_POST)["Items"]
        queried = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
        items = client.scan(TableName=name)["Items"]

    assert texts(entries, "Subject") == texts(queried, "Subject") == ["b"]
    assert sorted(texts(items, "Subject")) == ["a", "b", "c"]
