"""The unmodified PynamoDB 6: models with a local index, conditions, updates, batches, pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pynamodb.attributes import (
    BooleanAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.exceptions import DeleteError, DoesNotExist, PutError, UpdateError
from pynamodb.indexes import AllProjection, LocalSecondaryIndex
from pynamodb.models import Model

from tests.support.clients.clients import REGION
from tests.support.tables.tables import unique_name


class ByReplies(LocalSecondaryIndex):  # type: ignore[type-arg]
    class Meta:
        index_name = "by-replies"
        projection = AllProjection()

    forum = UnicodeAttribute(hash_key=True)
    replies = NumberAttribute(range_key=True)


class Author(MapAttribute):  # type: ignore[type-arg]
    name = UnicodeAttribute()
    karma = NumberAttribute(default=0)


class Thread(Model):
    class Meta:
        table_name = unique_name("threads")
        region = REGION
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    forum = UnicodeAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)
    replies = NumberAttribute(default=0)
    answered = BooleanAttribute(default=False)
    tags = UnicodeSetAttribute(null=True)
    posted = UTCDateTimeAttribute(null=True)
    author = Author(null=True)
    history: ListAttribute = ListAttribute(null=True)  # type: ignore[type-arg]
    extra = JSONAttribute(null=True)
    by_replies = ByReplies()


class Document(Model):
    class Meta:
        table_name = unique_name("documents")
        region = REGION
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    key = UnicodeAttribute(hash_key=True)
    text = UnicodeAttribute(null=True)
    version = VersionAttribute()


@pytest.fixture(scope="module", autouse=True)
def tables(endpoint: str) -> Iterator[None]:
    """The tables of the models, which PynamoDB creates."""
    for model in (Thread, Document):
        model.Meta.host = endpoint  # type: ignore[attr-defined]
        model.create_table(wait=True)
    yield
    for model in (Thread, Document):
        model.delete_table()
        connection = model._get_connection().connection
        connection.client.close()


@pytest.fixture
def forum() -> str:
    return unique_name("forum")


def test_a_model_can_be_saved_and_loaded(forum: str):
    posted = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    thread = Thread(
        forum,
        "subject",
        replies=3,
        answered=True,
        tags={"a", "b"},
        posted=posted,
        author=Author(name="Ann", karma=7),
        history=[1, "two", {"three": 3}],
        extra={"nested": [1, 2, {"x": None}]},
    )
    report = thread.save()
    assert report["ConsumedCapacity"]["CapacityUnits"] == 2.0
    loaded = Thread.get(forum, "subject", consistent_read=True)
    assert loaded.attribute_values.keys() == thread.attribute_values.keys()
    assert loaded.posted == posted
    assert loaded.author.karma == 7
    assert loaded.tags == {"a", "b"}
    assert list(loaded.history)[:2] == [1, "two"]
    assert loaded.extra == {"nested": [1, 2, {"x": None}]}


def test_a_missing_item_raises_does_not_exist(forum: str):
    with pytest.raises(DoesNotExist):
        Thread.get(forum, "nothing")


def test_saves_and_deletes_can_have_conditions(forum: str):
    thread = Thread(forum, "guarded")
    thread.save(Thread.subject.does_not_exist())
    with pytest.raises(PutError) as failure:
        thread.save(Thread.subject.does_not_exist())
    assert failure.value.cause_response_code == "ConditionalCheckFailedException"
    with pytest.raises(DeleteError):
        thread.delete((Thread.replies > 5) | Thread.answered.exists() & (Thread.answered == True))  # noqa: E712
    thread.delete(Thread.replies == 0)
    assert Thread.count(forum) == 0


def test_updates_change_the_named_attributes(forum: str):
    thread = Thread(forum, "updated", tags={"a"}, history=[1])
    thread.save()
    thread.update(
        actions=[
            Thread.replies.add(2),
            Thread.answered.set(True),
            Thread.tags.add({"b"}),
            Thread.history.set(Thread.history.append([2])),
            Thread.author.set(Author(name="Bob")),
        ],
        condition=Thread.replies < 10,
    )
    assert thread.replies == 2
    assert thread.tags == {"a", "b"}
    assert list(thread.history) == [1, 2]
    thread.update(actions=[Thread.author.karma.set(9), Thread.tags.delete({"a"})])
    assert (thread.author.karma, thread.tags) == (9, {"b"})
    thread.update(actions=[Thread.tags.remove(), Thread.history[0].remove()])
    assert thread.tags is None
    assert list(thread.history) == [2]
    with pytest.raises(UpdateError):
        thread.update(actions=[Thread.replies.set(0)], condition=Thread.replies > 100)


def test_queries_filter_order_and_page(forum: str):
    with Thread.batch_write() as batch:
        for number in range(60):
            batch.save(
                Thread(forum, f"s{number:02}", replies=number % 10, answered=number % 2 == 0)
            )
    subjects = [thread.subject for thread in Thread.query(forum, page_size=7)]
    assert subjects == [f"s{number:02}" for number in range(60)]
    backwards = [t.subject for t in Thread.query(forum, scan_index_forward=False, limit=3)]
    assert backwards == ["s59", "s58", "s57"]
    some = Thread.query(
        forum,
        Thread.subject.between("s10", "s19"),
        filter_condition=(Thread.answered == True) & Thread.replies.is_in(2, 4, 5),  # noqa: E712
        attributes_to_get=["subject", "replies"],
    )
    assert [thread.subject for thread in some] == ["s12", "s14"]
    assert Thread.count(forum, Thread.subject.startswith("s3")) == 10


def test_a_query_of_an_index_returns_items_in_the_order_of_the_index(forum: str):
    with Thread.batch_write() as batch:
        for number in range(20):
            batch.save(Thread(forum, f"s{number:02}", replies=(number * 7) % 20))
    found = Thread.by_replies.query(forum, Thread.replies >= 15, page_size=2)
    assert [thread.replies for thread in found] == [15, 16, 17, 18, 19]
    assert Thread.by_replies.count(forum) == 20


def test_a_query_continues_after_the_last_evaluated_key(forum: str):
    with Thread.batch_write() as batch:
        for number in range(10):
            batch.save(Thread(forum, f"s{number}"))
    first = Thread.query(forum, limit=4)
    found = [thread.subject for thread in first]
    rest = Thread.query(forum, last_evaluated_key=first.last_evaluated_key)
    found += [thread.subject for thread in rest]
    assert found == [f"s{number}" for number in range(10)]


def test_batches_get_existing_items(forum: str):
    with Thread.batch_write() as batch:
        for number in range(120):
            batch.save(Thread(forum, f"s{number:03}"))
    keys = [(forum, f"s{number:03}") for number in range(150)]
    found = sorted(thread.subject for thread in Thread.batch_get(keys))
    assert found == [f"s{number:03}" for number in range(120)]
    with Thread.batch_write() as batch:
        for thread in Thread.query(forum):
            batch.delete(thread)
    assert Thread.count(forum) == 0


def test_a_scan_finds_by_its_filter(forum: str):
    Thread(forum, "one", extra={"a": 1}).save()
    found = list(Thread.scan(Thread.forum == forum, segment=None, page_size=50))
    assert [thread.subject for thread in found] == ["one"]


def test_versions_refuse_a_stale_writer(forum: str):
    Document(forum, text="first").save()
    mine, other = Document.get(forum), Document.get(forum)
    mine.text = "mine"
    mine.save()
    other.text = "other"
    with pytest.raises(PutError):
        other.save()
    mine.refresh(consistent_read=True)
    assert (mine.text, mine.version) == ("mine", 2)


def test_an_unknown_table_raises_table_does_not_exist(endpoint: str):
    class Missing(Model):
        class Meta:
            table_name = unique_name("missing")
            region = REGION
            host = endpoint
            aws_access_key_id = "test"
            aws_secret_access_key = "test"

        key = UnicodeAttribute(hash_key=True)

    assert not Missing.exists()
    with pytest.raises(PutError) as failure:
        Missing("a").save()
    assert failure.value.cause_response_code == "ResourceNotFoundException"
    Missing._get_connection().connection.client.close()
