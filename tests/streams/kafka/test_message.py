"""The records of Kafka: keys, the default format byte for byte, headers, tombstones, gaps."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from dynactor.streams.sequence_number import SequenceNumber
from dynactor.streams.stream_record import event_id, event_name, stream_record
from tests.properties import strategies
from tests.support.kafka.kafka_forms import (
    EXPIRED,
    IN_TRANSACTION,
    INSERT,
    KEY,
    MODIFY,
    NEW,
    REMOVE,
    SOURCE,
    TAKEN_US,
    stored,
)
from tests.support.streams.changes import change

DEFAULT = KafkaForm()
DEBEZIUM = KafkaForm(format="debezium")
FORMS = [
    KafkaForm(format=format_, key=key, plain_images=plain, schema=schema)
    for format_, key, plain, schema in product(
        ("dynamodb", "debezium"), ("item", "collection"), (False, True), (False, True)
    )
]
KEY_JSON = '{"Artist":{"S":"Björk"},"Year":{"N":"1997"}}'
OLD_JSON = '{"Artist":{"S":"Björk"},"Year":{"N":"1997"},"Plays":{"N":"41"}}'
NEW_JSON = KEY_JSON[:-1] + ',"Plays":{"N":"42"},"Tags":{"SS":["art","pop"]}}'


def only(record: ChangeRecord, form: KafkaForm = DEFAULT) -> KafkaMessage:
    (message,) = change_messages(record, SOURCE, form)
    return message


def decoded(message: KafkaMessage) -> Any:
    assert message.value is not None
    return json.loads(message.value)


def expected(name: str, size_bytes: int, images: str, identity: str = "null") -> str:
    return (
        f'{{"awsRegion":"eu-west-1","eventID":"{event_id(MODIFY)}","eventName":"{name}",'
        f'"userIdentity":{identity},"recordFormat":"application/json","tableName":"Music",'
        '"dynamodb":{"ApproximateCreationDateTime":1700000000987,'
        '"ApproximateCreationDateTimePrecision":"MILLISECOND",'
        f'"Keys":{KEY_JSON},{images},"SequenceNumber":"000000000549755813893",'
        f'"SizeBytes":{size_bytes}}},"eventSource":"aws:dynamodb"}}'
    )


SERVICE = '{"type":"Service","principalId":"dynamodb.amazonaws.com"}'


# The key has 6 + 6 + 4 + 3 bytes, the old image 5 + 2 more, the new one 5 + 2 + 4 + 6.
@pytest.mark.parametrize(
    ("record", "value"),
    [
        (INSERT, expected("INSERT", 19 + 36, f'"NewImage":{NEW_JSON}')),
        (
            MODIFY,
            expected("MODIFY", 19 + 36 + 26, f'"NewImage":{NEW_JSON},"OldImage":{OLD_JSON}'),
        ),
        (REMOVE, expected("REMOVE", 19 + 36, f'"OldImage":{NEW_JSON}')),
        (EXPIRED, expected("REMOVE", 19 + 36, f'"OldImage":{NEW_JSON}', SERVICE)),
    ],
    ids=["insert", "modify", "remove", "expired"],
)
def test_a_change_in_the_default_format_has_the_documented_bytes(record: ChangeRecord, value: str):
    message = only(record)
    assert message.value == value.encode()
    assert message.key == KEY_JSON.encode()
    assert message.timestamp_ms == 1_700_000_000_987


def test_the_time_has_the_requested_precision():
    source = replace(SOURCE, precision="MICROSECOND")
    body = decoded(change_messages(MODIFY, source, DEFAULT)[0])["dynamodb"]
    assert body["ApproximateCreationDateTime"] == 1_700_000_000_987_654
    assert body["ApproximateCreationDateTimePrecision"] == "MICROSECOND"


def test_a_row_of_a_snapshot_is_an_insertion_marked_as_a_snapshot():
    message = snapshot_message(stored(MODIFY), SOURCE, DEFAULT, taken_us=TAKEN_US)
    body = decoded(message)
    assert (body["eventName"], body["snapshot"]) == ("INSERT", True)
    assert body["dynamodb"]["NewImage"] == KEY | NEW
    assert body["dynamodb"]["ApproximateCreationDateTime"] == TAKEN_US // 1000
    assert message.key == only(MODIFY).key
    assert dict(message.headers)["origin"] == b"snapshot"
    assert "snapshot" not in decoded(only(INSERT))


def test_a_row_of_a_snapshot_has_the_number_of_the_change_that_made_it():
    row = decoded(snapshot_message(stored(MODIFY), SOURCE, DEFAULT, taken_us=TAKEN_US))
    assert row["dynamodb"]["SequenceNumber"] == decoded(only(MODIFY))["dynamodb"]["SequenceNumber"]
    assert row["eventID"] != decoded(only(MODIFY))["eventID"]


def test_every_snapshot_gives_a_row_an_event_id_of_its_own():
    first, second = (
        decoded(snapshot_message(stored(MODIFY), SOURCE, DEFAULT, taken_us=taken_us))["eventID"]
        for taken_us in (1, 2)
    )
    assert first != second


def test_the_key_of_a_gap_is_the_key_of_no_item():
    message = gap_message(SOURCE, DEFAULT, time_us=TAKEN_US)
    assert message.key == b"{}"
    body = decoded(message)
    assert body["eventName"] == "GAP"
    assert body["dynamodb"] == {
        "ApproximateCreationDateTime": TAKEN_US // 1000,
        "ApproximateCreationDateTimePrecision": "MILLISECOND",
        "Keys": {},
        "SizeBytes": 0,
    }
    headers = dict(message.headers)
    assert (headers["event-name"], headers["origin"]) == (b"GAP", b"gap")
    assert "sequence-number" not in headers


def test_the_key_of_a_gap_is_the_same_with_keys_of_collections():
    assert gap_message(SOURCE, KafkaForm(key="collection"), time_us=TAKEN_US).key == b"{}"


def test_headers_have_the_data_for_filters():
    assert only(EXPIRED).headers == (
        ("content-type", b"application/json"),
        ("event-name", b"REMOVE"),
        ("event-id", event_id(EXPIRED).encode()),
        ("origin", b"ttl"),
        ("table", b"Music"),
        ("sequence-number", b"000000000549755813893"),
    )


def test_a_change_names_the_access_key_of_its_caller():
    signed = change(KEY, {}, {"n": {"N": "1"}}, author="AKIDAPP")
    assert dict(only(signed).headers)["access-key-id"] == b"AKIDAPP"
    assert "access-key-id" not in dict(only(MODIFY).headers)


def test_a_change_of_a_transaction_names_it():
    headers = dict(only(IN_TRANSACTION).headers)
    assert (headers["origin"], headers["transaction-id"]) == (b"transaction", b"01ff")
    assert "transaction-id" not in dict(only(MODIFY).headers)


def test_cloud_events_have_their_standard_headers():
    headers = dict(only(MODIFY, KafkaForm(cloud_events=True)).headers)
    assert {name: value for name, value in headers.items() if name.startswith("ce_")} == {
        "ce_specversion": b"1.0",
        "ce_id": event_id(MODIFY).encode(),
        "ce_source": b"arn:aws:dynamodb:eu-west-1:000000000000:table/Music",
        "ce_type": b"dynactor.item.modify",
        "ce_subject": KEY_JSON.encode(),
        "ce_time": b"2023-11-14T22:13:20.987654Z",
    }
    assert headers["content-type"] == b"application/json"


def test_cloud_events_distinguish_rows_of_a_snapshot_and_gaps():
    form = KafkaForm(cloud_events=True)
    row = snapshot_message(stored(MODIFY), SOURCE, form, taken_us=TAKEN_US)
    gap = gap_message(SOURCE, form, time_us=TAKEN_US)
    assert dict(row.headers)["ce_type"] == b"dynactor.item.snapshot"
    assert dict(gap.headers)["ce_type"] == b"dynactor.table.gap"


@pytest.mark.parametrize(
    ("form", "has_tombstone"),
    [
        (DEFAULT, False),
        (KafkaForm(tombstones=True), True),
        (DEBEZIUM, True),
        (KafkaForm(format="debezium", tombstones=False), False),
        (KafkaForm(format="debezium", key="collection"), False),
    ],
)
def test_a_tombstone_follows_a_removal(form: KafkaForm, has_tombstone: bool):
    removal, *rest = change_messages(REMOVE, SOURCE, form)
    if has_tombstone:
        (tombstone,) = rest
        assert (tombstone.key, tombstone.value) == (removal.key, None)
        assert dict(tombstone.headers) == {
            "table": b"Music",
            "sequence-number": b"000000000549755813893",
        }
    else:
        assert rest == []
    assert len(change_messages(MODIFY, SOURCE, form)) == 1


def test_tombstones_under_the_key_of_a_collection_are_refused():
    with pytest.raises(ConfigurationError, match="all items of an item collection"):
        KafkaForm(key="collection", tombstones=True)


def test_the_key_of_a_collection_is_the_partition_key():
    message = only(MODIFY, KafkaForm(key="collection"))
    assert message.key == '{"Artist":{"S":"Björk"}}'.encode()


def test_a_record_without_images_has_all_other_members():
    message = only(MODIFY)
    cut = without_images(message, SOURCE, DEFAULT)
    body = decoded(message)
    del body["dynamodb"]["NewImage"], body["dynamodb"]["OldImage"]
    assert decoded(cut) == body
    assert cut.headers == (*message.headers, ("images-omitted", b"true"))
    assert cut.key == message.key


def test_a_tombstone_has_no_images_to_leave_out():
    tombstone = change_messages(REMOVE, SOURCE, DEBEZIUM)[1]
    assert without_images(tombstone, SOURCE, DEBEZIUM) is tombstone


def test_a_record_without_images_is_unchanged_by_leaving_them_out_again():
    cut = without_images(only(MODIFY), SOURCE, DEFAULT)
    assert without_images(cut, SOURCE, DEFAULT) is cut


images = st.one_of(st.none(), strategies.items)
changes = st.builds(
    change,
    st.builds(
        lambda artist, year: {"Artist": artist, "Year": year},
        strategies.strings,
        strategies.number_values,
    ),
    images,
    images,
    st.builds(SequenceNumber, st.integers(1, 1 << 25), st.integers(1, 1 << 37)),
    # Up to the year 9999.
    commit_time_us=st.integers(0, 253_402_300_799_999_999),
    origin=st.sampled_from((Origin.USER, Origin.TTL, Origin.TRANSACTION)),
    transaction=st.one_of(
        st.none(),
        st.builds(
            TransactionPlace,
            st.binary(min_size=1, max_size=36),
            st.integers(0, 99),
            st.integers(1, 100),
        ),
    ),
).filter(lambda record: record.old is not None or record.new is not None)


@given(changes)
def test_the_default_format_has_the_data_of_dynamodbs_stream(record: ChangeRecord):
    streamed = json.loads(stream_record(record, "NEW_AND_OLD_IMAGES", "eu-west-1").json)
    body = decoded(only(record))
    for name in ("eventID", "eventName", "eventSource", "awsRegion"):
        assert body[name] == streamed[name]
    for name in ("Keys", "NewImage", "OldImage", "SequenceNumber", "SizeBytes"):
        assert body["dynamodb"].get(name) == streamed["dynamodb"].get(name)
    assert (body["userIdentity"] is not None) == ("userIdentity" in streamed)


@given(changes, st.sampled_from(FORMS))
def test_every_form_is_json_and_the_same_each_time(record: ChangeRecord, form: KafkaForm):
    messages = change_messages(record, SOURCE, form)
    assert messages == change_messages(record, SOURCE, form)
    for message in messages:
        json.loads(message.key)
        assert message.value is None or json.loads(message.value)
        headers = dict(message.headers)
        assert headers["sequence-number"].decode() == record.sequence_number.wire()
    headers = dict(messages[0].headers)
    assert headers["event-name"].decode() == event_name(record)
    assert headers["event-id"].decode() == event_id(record)


@given(changes, changes, st.sampled_from(FORMS))
def test_keys_are_equal_exactly_where_items_are(
    one: ChangeRecord, other: ChangeRecord, form: KafkaForm
):
    names = ("Artist",) if form.key == "collection" else ("Artist", "Year")
    same = all(one.key[name] == other.key[name] for name in names)
    keys = [change_messages(record, SOURCE, form)[0].key for record in (one, other)]
    assert (keys[0] == keys[1]) == same


@given(changes, st.sampled_from(FORMS))
def test_a_row_of_a_snapshot_has_the_key_of_its_changes(record: ChangeRecord, form: KafkaForm):
    image = record.new or record.old
    assert image is not None
    # A stored item need not begin with its key.
    turned = StoredItem.of(dict(reversed(list(image.item.items()))), image.version)
    row = snapshot_message(turned, SOURCE, form, taken_us=TAKEN_US)
    assert row.key == change_messages(record, SOURCE, form)[0].key


@given(changes, st.sampled_from(FORMS))
def test_a_record_without_images_is_small(record: ChangeRecord, form: KafkaForm):
    message = change_messages(record, SOURCE, form)[0]
    cut = without_images(message, SOURCE, form)
    assert cut.value is not None
    assert len(cut.value) <= len(message.value or b"")
    json.loads(cut.value)
    bare = change_messages(
        replace(
            record,
            old=record.old and StoredItem.of(record.key, 1),
            new=record.new and StoredItem.of(record.key, 1),
        ),
        SOURCE,
        form,
    )[0]
    if form.format == "debezium":
        assert decoded(cut) == decoded(bare)


def test_a_source_with_a_percent_sign_in_its_name_is_written_as_it_is():
    source = replace(SOURCE, region="100%d", prefix="%b")
    assert decoded(change_messages(MODIFY, source, DEFAULT)[0])["awsRegion"] == "100%d"
    assert decoded(change_messages(MODIFY, source, DEBEZIUM)[0])["source"]["name"] == "%b"


def test_sizes_are_dynamodbs():
    size_bytes = decoded(only(MODIFY))["dynamodb"]["SizeBytes"]
    assert MODIFY.old is not None
    assert MODIFY.new is not None
    shown = items.size_bytes(KEY), MODIFY.old.size_bytes, MODIFY.new.size_bytes
    assert size_bytes == sum(shown)
