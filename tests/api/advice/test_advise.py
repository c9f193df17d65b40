"""The findings of ``dynactor advise`` by rule, and cases without findings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from dynactor.api.admin_api.insights_messages import (
    BusyKey,
    CollectionSize,
    Counted,
    InsightsAnswer,
    KeyWeight,
    Minute,
    ThrottleCount,
    Units,
    UseAnswer,
)
from dynactor.api.advice.facts import AdviceFacts
from dynactor.api.advice.index_findings import index_findings, index_key_findings
from dynactor.api.advice.key_findings import (
    Finding,
    collection_findings,
    key_findings,
    throttling_findings,
)
from dynactor.api.advice.text import figure, key_text, percent, size, span, time_span
from dynactor.api.advice.traffic import Traffic
from dynactor.api.commands.advise import AdviseOptions
from dynactor.model.advice.key_traffic import IndexUse
from dynactor.model.values.item import Item
from tests.support.tables.tables import global_index, key_schema, local_index

NOW = 1_800_000_000.0
GIB = 1024**3
DAY = 24 * 60 * 60


def options(**given: Any) -> AdviseOptions:
    return AdviseOptions(table="Orders", **given)


def counted(**weights: float) -> Counted:
    """Counts of keys: each customer with a weight."""
    keys = [KeyWeight({"customer": {"S": name}}, weight) for name, weight in weights.items()]
    keys.sort(key=lambda each: -each.weight)
    return Counted(sum(weights.values()), 0.0, 0.0, keys)


def minute(kind: Any, per_second: float, seconds: int = 60, **shares: float) -> Minute:
    """The counts of a minute with this load in its first ``seconds``, by customers' shares."""
    total = per_second * seconds
    weights = {name: total * share for name, share in shares.items()}
    others = total * (1 - sum(shares.values()))
    rest = {f"other-{number}": others / 1_000 for number in range(1_000)} if others > 1e-6 else {}
    of_seconds = [per_second] * seconds + [0.0] * (60 - seconds)
    return Minute(NOW - 60, {kind: of_seconds}, {kind: counted(**weights, **rest)}, {})


def facts(
    *minutes: Minute,
    sample: list[Item] | None = None,
    description: dict[str, Any] | None = None,
    **use: Any,
) -> AdviceFacts:
    """The facts about an on-demand table of orders by customer, with 4 partitions."""
    described = {
        "TableName": "Orders",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("customer", "order", "status", "day")
        ],
        "KeySchema": key_schema("customer", "order"),
        "ItemCount": 1_000,
        "TableSizeBytes": 800_000,
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
    } | (description or {})
    answer = InsightsAnswer("Orders", None, "DISABLED", None, "some", NOW - DAY, NOW, list(minutes))
    known = UseAnswer(
        table="Orders",
        since=NOW - DAY,
        now=NOW,
        throttling="observe",
        item_collection_limit_bytes=10 * GIB,
        partitions={"": 4},
        consumed={"": Units(0.0, 0.0)},
        throttles=[],
        uses={},
        collections=[],
        busy_keys=[],
        written=[],
    )
    return AdviceFacts(described, structs.replace(known, **use), Traffic(answer), {}, sample or [])


def about(findings: Any, rule: str) -> list[Finding]:
    return [finding for finding in findings if rule in finding.rules]


# -- keys -----------------------------------------------------------------------------------


def test_even_traffic_is_reported_as_a_fact_without_a_hot_key():
    found = list(key_findings(facts(minute("writes", 2_000)), options()))

    (skew,) = about(found, "S76")
    assert skew.level == "fact"
    # The counted keys have equal shares of the 1,000 keys.
    assert skew.figures["effective_keys"] >= 1_000
    assert len(found) == 1


def test_a_hot_key_is_named_with_its_suffixes_and_their_cost():
    known = facts(
        minute("writes", 4_000, acme=0.6),
        busy_keys=[BusyKey({"customer": {"S": "acme"}}, 8_000, True)],
    )

    (hot,) = about(key_findings(known, options()), "S145")

    assert hot.level == "problem"
    assert hot.text.startswith("Hot key acme: about 2,400 write units in its busiest second")
    assert "the limit of one partition key value is 1,000" in hot.text
    assert "unless DynamoDB splits the key's items" in hot.text
    assert hot.advice.startswith("Add one of 3 suffixes or more to the key, -1 to -3")
    assert "takes 3 queries instead of one, and 1.5 read units instead of 1" in hot.advice
    assert hot.figures["suffixes"] == 3


def both(accepted: Minute, refused: Minute) -> Minute:
    """A minute in which some units were accepted and some throttled."""
    return Minute(
        accepted.start,
        accepted.seconds | refused.seconds,
        accepted.partitions | refused.partitions,
        {},
    )


def test_the_rate_of_a_throttled_hot_key_includes_refused_requests():
    busy = both(
        minute("writes", 1_000, seconds=12, acme=1.0),
        minute("throttled_writes", 4_900, seconds=12, acme=1.0),
    )
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 9_000}}

    (enforced,) = about(
        key_findings(facts(busy, description=units, throttling="enforce"), options()), "S145"
    )
    (observed,) = about(key_findings(facts(busy, description=units), options()), "S139")

    assert enforced.text.startswith("Hot key acme: about 5,900 write units in its busiest second")
    assert enforced.figures["suffixes"] == 6
    # Units that are only observed as throttled were accepted, too, and must count once.
    assert observed.figures["busiest_second"] == 1_000


def test_a_key_near_its_limit_is_reported_as_warm():
    (warm,) = about(key_findings(facts(minute("reads", 2_000, acme=0.8)), options()), "S139")

    assert warm.level == "hint"
    assert warm.text.startswith("Warm key acme: about 1,600 read units")
    assert warm.advice == ""


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (
            {"KeySchema": key_schema("customer")},
            "The key has one item, which can't be split over partitions",
        ),
        (
            {"LocalSecondaryIndexes": [local_index("by-day", "customer", "day")]},
            "its item collections are never split (S74)",
        ),
    ],
)
def test_a_key_that_suffixes_cannot_divide_is_reported(description, words):
    known = facts(minute("writes", 4_000, acme=0.6), description=description)

    (hot,) = about(key_findings(known, options()), "S145")

    assert words in hot.text


def test_a_hot_item_is_reported():
    item = {"customer": {"S": "acme"}, "order": {"S": "counter"}}
    busy = minute("writes", 4_000, acme=0.6)
    of_items = Counted(240_000, 0.0, 0.0, [KeyWeight(item, 100_000)])
    known = facts(structs.replace(busy, items={"writes": of_items}))

    (hot,) = about(key_findings(known, options()), "S145")

    assert "Most of these units are for one item, acme / counter, which can't" in hot.text


@pytest.mark.parametrize(("per_second", "count"), [(0.1, 0), (1, 1)])
def test_keys_of_transaction_conflicts_are_named(per_second, count):
    busy = minute("conflicts", per_second, acme=0.9, other=0.1)
    known = facts(busy, description={"KeySchema": key_schema("customer")})

    found = [
        each
        for each in key_findings(known, options())
        if "conflicted with a transaction" in each.text
    ]

    assert len(found) == count
    for each in found:
        assert each.text.endswith("transaction on their item: acme 90 %, other 10 %")
        assert each.figures["conflicts"] == 60


def test_planned_writes_need_suffixes_by_the_formula():
    (planned,) = about(
        key_findings(facts(), options(writes_per_second=5_000, item_size_bytes=1_500)), "A9"
    )

    assert planned.figures["suffixes"] == 10
    assert "need 10 suffixes: 5,000 times 2 units, divided by 1,000" in planned.text


def test_few_values_of_the_partition_key_are_reported():
    few = [{"customer": {"S": f"{n % 3}"}, "order": {"S": f"{n}"}} for n in range(200)]
    many = [{"customer": {"S": f"{n}"}, "order": {"S": "1"}} for n in range(200)]

    (told,) = about(key_findings(facts(sample=few), options()), "S157")

    assert told.figures == {"sampled_items": 200, "partition_keys": 3}
    assert not about(key_findings(facts(sample=many), options()), "S157")


def test_few_values_of_the_partition_key_of_a_small_table_are_not_reported():
    few = [{"customer": {"S": f"{n % 3}"}, "order": {"S": f"{n}"}} for n in range(101)]
    known = facts(sample=few, description={"ItemCount": 101})

    assert not about(key_findings(known, options()), "S157")


def test_a_table_without_traffic_is_reported():
    (none,) = key_findings(facts(), options())

    assert none.text == "No reads or writes were counted in the last hour"


# -- throughput -----------------------------------------------------------------------------


def test_too_few_units_are_reported_with_their_cause():
    known = facts(minute("writes", 200))

    (enough,) = throttling_findings(known, options(write_units=200, read_units=5))
    (too_few,) = throttling_findings(known, options(write_units=50))

    assert enough.level == "fact"
    assert enough.text.startswith("With 200 write units on 1 partition, none of the last hour's")
    assert too_few.level == "problem"
    assert too_few.figures["throttled_share"] == pytest.approx(0.75, abs=0.02)
    assert too_few.advice.endswith(" % because the request rate is above the units")


def test_reads_of_an_on_demand_table_are_not_compared_if_write_units_are_given():
    known = facts(minute("reads", 200))

    assert list(throttling_findings(known, options(write_units=50))) == []
    (found,) = throttling_findings(known, options())
    assert found.text.startswith("On demand on 4 partitions, none of")


def test_the_tables_own_units_are_compared_if_none_are_given():
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 100}}

    (found,) = throttling_findings(
        facts(minute("writes", 200), description=units, partitions={"": 1}), options()
    )

    assert found.figures["units_per_second"] == 100
    assert found.figures["throttled_share"] == pytest.approx(0.5, abs=0.02)


def test_more_units_do_not_help_against_a_throttled_hot_key():
    known = facts(minute("writes", 4_000, acme=0.5))

    (found,) = throttling_findings(known, options(write_units=40_000))

    assert found.figures["throttled_share"] == pytest.approx(0.25, abs=0.02)
    assert found.advice.endswith("because a hot key is above a partition's limit of 1,000")


def test_refused_requests_add_to_the_accepted_ones():
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 100}}
    accepted = minute("writes", 100)
    refused = minute("throttled_writes", 100)
    together = both(accepted, refused)
    enforced = facts(together, description=units, partitions={"": 1}, throttling="enforce")
    observed = facts(together, description=units, partitions={"": 1})

    assert next(throttling_findings(enforced, options())).figures["offered_units"] == 12_000
    assert next(throttling_findings(observed, options())).figures["offered_units"] == 6_000


def test_throttled_requests_are_reported_by_cause():
    known = facts(
        throttles=[
            ThrottleCount("TableReadProvisionedThroughputExceeded", "", 3, observed=False),
            ThrottleCount("IndexWriteKeyRangeThroughputExceeded", "by-day", 7, observed=True),
        ]
    )

    first, second = throttling_findings(known, options())

    assert first.text.startswith(
        "DynamoDB would have throttled 7 requests at index by-day since the server started, by "
        "IndexWriteKeyRangeThroughputExceeded: "
    )
    assert second.text.startswith("The server throttled 3 requests")
    assert second.text.endswith("above the provisioned units")


# -- collections ----------------------------------------------------------------------------


def of_acme(size_bytes: int, first: float | None = None, first_bytes: int = 0) -> CollectionSize:
    return CollectionSize({"customer": {"S": "acme"}}, size_bytes, first, first_bytes)


WITH_LOCAL = {"LocalSecondaryIndexes": [local_index("by-day", "customer", "day")]}


def test_a_collection_over_8_gb_is_reported_with_the_time_when_it_is_full():
    acme = of_acme(8 * GIB, NOW - DAY, 7 * GIB)

    (found,) = collection_findings(facts(description=WITH_LOCAL, collections=[acme]))

    assert found.level == "problem"
    assert "S73" in found.rules
    assert found.text == (
        "Item collection acme has 8 GB of 10 GB; it grows by 1 GB a day and is full in 2 days"
    )


def test_a_collection_below_8_gb_is_a_fact():
    acme = of_acme(int(7.9 * GIB), NOW - 5, 0)

    (found,) = collection_findings(facts(description=WITH_LOCAL, collections=[acme]))

    assert (found.level, found.advice) == ("fact", "")
    # A few seconds of growth are too short for a forecast in days.
    assert found.text == "The largest item collection acme has 7.9 GB of 10 GB"


def test_without_local_indexes_collections_have_no_limit():
    assert list(collection_findings(facts(collections=[of_acme(9 * GIB)]))) == []


# -- indexes --------------------------------------------------------------------------------


def described(index: dict[str, Any], member: str = "GlobalSecondaryIndexes") -> dict[str, Any]:
    return {member: [index | {"ItemCount": 1_000, "IndexSizeBytes": 900_000}]}


def used(
    index: dict[str, Any], use: IndexUse, write_units: float = 0.0, **known: Any
) -> AdviceFacts:
    consumed = {"": Units(1.0, 1.0), index["IndexName"]: Units(use.read_units, write_units)}
    return facts(
        description=described(index),
        consumed=consumed,
        uses={index["IndexName"]: use},
        **known,
    )


BY_STATUS = global_index("by-status", "status")
ITEMS = [
    {
        "customer": {"S": "acme"},
        "order": {"S": f"{number}"},
        "status": {"S": "new"},
        "day": {"S": "2026-11-20"},
        "text": {"S": "x" * 3_000},
    }
    for number in range(10)
]


def test_an_index_without_reads_is_reported_with_its_cost():
    (found,) = index_findings(used(BY_STATUS, IndexUse(), 5_000))

    assert found.level == "hint"
    assert found.text == (
        "Global index by-status was not read in 24 hours; it consumed 5,000 write units, and its "
        "size is 879 KB"
    )


def test_an_index_without_reads_for_a_short_time_is_only_a_fact():
    (found,) = index_findings(used(BY_STATUS, IndexUse(), 5_000, since=NOW - 4.5))

    assert (found.level, found.advice) == ("fact", "")
    assert found.text.startswith("by-status: not read in 4.5 seconds. Only after")


@pytest.mark.parametrize(
    ("reads", "seconds", "count"), [(1, DAY, 0), (99, DAY, 0), (500, 599, 0), (100, 600, 1)]
)
def test_few_requests_or_little_time_give_no_advice_about_a_projection(reads, seconds, count):
    use = IndexUse(queries=reads, read_units=5_000, asked_names={"day": reads})
    known = used(BY_STATUS, use, 5_000, sample=ITEMS, since=NOW - seconds)

    assert len(about(index_findings(known), "S21")) == count


def test_an_attribute_without_reads_need_not_be_projected():
    use = IndexUse(queries=100, read_units=5_000, asked_names={"customer": 100, "day": 90})

    (found,) = about(index_findings(used(BY_STATUS, use, 5_000, sample=ITEMS)), "S21")

    assert found.text.endswith("100 reads requested only day: no read requested text")
    assert found.advice == ("Project INCLUDE day: a write then consumes 1 instead of 3 write units")


def test_an_index_whose_attributes_are_all_read_has_no_finding():
    use = IndexUse(queries=100, read_units=5_000, asked_all=1, asked_names={"day": 99})

    assert list(index_findings(used(BY_STATUS, use, 5_000, sample=ITEMS))) == []


def test_an_index_with_many_writes_and_few_reads_is_reported():
    use = IndexUse(queries=100, read_units=50, asked_all=100)

    (found,) = about(index_findings(used(BY_STATUS, use, 5_000, sample=ITEMS)), "S24")

    assert "KEYS_ONLY instead of ALL" in found.advice


@pytest.mark.parametrize(("fetches", "level"), [(90, "hint"), (2, "fact")])
def test_fetches_of_a_local_index_are_reported(fetches, level):
    index = local_index("by-day", "customer", "day", "KEYS_ONLY")
    use = IndexUse(queries=100, read_units=100, fetches=fetches, fetch_units=400)
    use.asked_names = {"text": float(fetches), "day": 100.0}
    known = facts(
        sample=ITEMS,
        description=described(index, "LocalSecondaryIndexes"),
        uses={"by-day": use},
    )

    (found,) = about(index_findings(known), "S37")

    assert found.level == level
    assert "attributes from the table (text): 400 read units" in found.text
    assert found.figures["missing"] == ["text"]


def test_a_table_that_is_mostly_scanned_is_reported():
    use = IndexUse(scans=400, scan_units=900, read_units=1_000)

    (found,) = index_findings(facts(consumed={"": Units(1_000.0, 0.0)}, uses={"": use}))

    assert found.rules == ("S3",)
    assert "90 %" in found.text
    few = structs.replace(use, scan_units=400)
    assert not list(index_findings(facts(consumed={"": Units(1_000.0, 0.0)}, uses={"": few})))


@pytest.mark.parametrize(
    ("scanned_for", "advice"),
    [
        ({"status": 500.0, "text": 900.0}, "Query index by-status instead: the scans filter by"),
        (
            {"customer": 10.0, "status": 500.0},
            "The scans filter by customer, the table's partition key",
        ),
        (
            {"text": 900.0, "day": 10.0},
            "The scans filter by text. Add a global index with this partition key",
        ),
        ({}, "Add an index on the attribute that the scans look for, and query it"),
    ],
)
def test_scans_that_a_query_of_an_index_could_replace_name_the_index(scanned_for, advice):
    use = IndexUse(scans=400, scan_units=900, read_units=1_000, scanned_for=scanned_for)
    index_use = IndexUse(queries=100, read_units=1_000, asked_all=100)
    known = facts(
        description=described(BY_STATUS),
        consumed={"": Units(1_000.0, 0.0), "by-status": Units(1_000.0, 0.0)},
        uses={"": use, "by-status": index_use},
    )

    (found,) = about(index_findings(known), "S3")

    assert found.advice.startswith(advice)


def test_a_single_scan_has_no_finding():
    use = IndexUse(scans=1, scan_units=900, read_units=1_000)

    assert not list(index_findings(facts(consumed={"": Units(1_000.0, 0.0)}, uses={"": use})))


def test_a_hot_key_of_an_index_throttles_the_table():
    index = structs.replace(facts(minute("writes", 4_000, acme=0.8)).traffic.answer, index="by-x")
    known = structs.replace(facts(), index_traffic={"by-x": Traffic(index)})

    (hot,) = index_findings(known)

    assert hot.level == "problem"
    assert hot.text == (
        "Hot key acme of index by-x: about 3,200 write units in its busiest second; the limit of "
        "one key value is 1,000; above it, writes to the table are throttled"
    )
    assert hot.figures["suffixes"] == 4


@pytest.mark.parametrize(("units", "told"), [(5, True), (10, False)])
def test_an_index_with_fewer_write_units_than_its_table_is_reported(units, told):
    index = BY_STATUS | {
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": units}
    }
    use = IndexUse(queries=100, read_units=5_000, asked_all=100)
    table = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 10}}
    known = used(index, use)
    known = structs.replace(known, description=known.description | table)

    assert bool(about(index_findings(known), "S103")) is told


# -- planned indexes ------------------------------------------------------------------------


def statuses(**counts: int) -> list[Item]:
    return [{"status": {"S": name}} for name, count in counts.items() for _ in range(count)]


def test_a_planned_index_on_status_is_reported_as_hot():
    known = facts(sample=statuses(new=80, sent=20), description={"TableSizeBytes": 1_000_000})

    (hot,) = about(index_key_findings(known, options(writes_per_second=5_000), "status"), "S139")

    assert hot.level == "problem"
    assert hot.figures["key_ceiling"] == 1_000
    assert hot.figures["write_units"] == 4_000
    assert hot.figures["most_writes_per_second"] == 1_250
    assert "more than 1,250 writes a second of 1 unit to the table would be throttled" in hot.text
    assert "IndexWriteKeyRangeThroughputExceeded" in hot.text
    assert hot.advice.startswith("Add an attribute with a number from 1 to 4 followed by status")


def test_writes_count_more_than_existing_items():
    known = facts(
        sample=statuses(new=10, done=90),
        written=statuses(new=100),
        description={"TableSizeBytes": 1_000_000},
    )

    found = list(index_key_findings(known, options(writes_per_second=2_000), "status"))

    (hot,) = about(found, "S139")
    assert hot.figures["write_units"] == 2_000
    assert [each.figures["of"] for each in about(found, "S170")] == [
        "items of the sample",
        "last writes",
    ]


def test_a_planned_index_with_an_even_key_has_no_problem():
    sample = [{"user": {"S": f"{number}"}} for number in range(100)]

    (found,) = about(
        index_key_findings(facts(sample=sample), options(writes_per_second=5_000), "user"), "S139"
    )

    assert found.level == "fact"


def test_the_measured_rate_is_used_if_none_is_given():
    known = facts(minute("writes", 3_000), sample=statuses(new=1))

    (found,) = about(index_key_findings(known, options(), "status"), "S139")

    assert found.figures["writes_per_second"] == 3_000


def test_a_missing_attribute_is_reported():
    (found,) = index_key_findings(facts(sample=statuses(new=3)), options(), "nothing")

    assert "None of 3 items of the sample has a value of nothing that can be a key" in found.text


# -- texts ----------------------------------------------------------------------------------


def test_figures_have_few_digits():
    assert [figure(number) for number in (0, 0.004, 0.5, 1, 9.96, 12.3, 12_345.6)] == [
        *("0", "0.004", "0.5", "1", "10", "12", "12,346"),
    ]
    assert [percent(share) for share in (0.004, 0.05, 0.5)] == ["0.4 %", "5 %", "50 %"]
    assert [size(number) for number in (10, 2_048, 3 * GIB)] == ["10 bytes", "2 KB", "3 GB"]
    assert [span(seconds) for seconds in (30, 300, 7_200, 3 * DAY)] == [
        *("30 seconds", "5 minutes", "2 hours", "3 days"),
    ]


def test_a_span_of_time_names_a_day_once():
    assert time_span(NOW, NOW + 3_600) == "2027-01-15 08:00 to 09:00 UTC"
    assert time_span(NOW, NOW + DAY) == "2027-01-15 08:00 to 2027-01-16 08:00 UTC"


def test_keys_are_shown_on_one_line_and_shortened():
    assert key_text({"a": {"S": "x"}, "b": {"N": "7"}}) == "x / 7"
    assert key_text({"a": {"S": "line\nline"}}) == "'line\\nline'"
    long = key_text({"a": {"S": "begin" + "x" * 100 + "end"}})
    assert long.startswith("begin")
    assert long.endswith("end")
    assert len(long) == 48
