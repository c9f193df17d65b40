"""The sizes of items, and the data in an item about itself."""

from __future__ import annotations

from random import Random
from statistics import mean, median

import msgspec
import pytest

from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records
from dynactor.load.work.sizes import MAX_BYTES, UnknownSizes, sizes

_DRAWS = 20_000


def drawn(specification: str) -> list[int]:
    random = Random(7)
    size = sizes(specification)
    return [size(random.random()) for _ in range(_DRAWS)]


def test_a_fixed_size_is_always_the_same():
    assert set(drawn("300")) == {300}


def test_a_uniform_size_includes_both_bounds_and_all_sizes_between():
    found = drawn("100-109")
    assert set(found) == set(range(100, 110))
    assert mean(found) == pytest.approx(104.5, rel=0.01)


def test_an_exponential_size_has_its_mean():
    assert mean(drawn("exponential:800")) == pytest.approx(800, rel=0.03)


def test_a_lognormal_size_has_its_median_and_a_long_tail():
    found = drawn("lognormal:300:0.7")
    assert median(found) == pytest.approx(300, rel=0.03)
    assert sorted(found)[int(0.975 * _DRAWS)] == pytest.approx(300 * 2.718 ** (0.7 * 1.96), rel=0.1)


def test_no_size_exceeds_the_limit_of_an_item():
    assert sizes("lognormal:300000:3")(0.999_999) == MAX_BYTES
    assert sizes("exponential:399000")(0.999_999) == MAX_BYTES


@pytest.mark.parametrize("specification", ["", "x", "0", "-5", "500-100", "lognormal:3", "1000000"])
def test_an_invalid_size_is_refused(specification: str):
    with pytest.raises(UnknownSizes):
        sizes(specification)


def plan(**options: object) -> Plan:
    return Plan(endpoint="http://localhost", table="t", mix={"get": 1}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [200, 300, 1_000, 40_000])
def test_an_item_has_about_the_size_that_was_asked_for(size: int):
    records = Records(plan(item_size=str(size)))
    item = msgspec.json.decode(records.item(1_234, 56, (56,) * 5))
    texts = [next(iter(value.values())) for value in item.values()]
    # DynamoDB counts names, and half a byte per digit of a number.
    assert sum(map(len, item)) + sum(map(len, texts)) == pytest.approx(size, abs=12)


def test_an_item_is_recognized_by_its_content():
    records = Records(plan(item_size="100-2000"))
    item = msgspec.json.decode(records.item(1_234, 7, (7, 3, 0, 7, 5)))
    assert records.recognize(item) == (1_234, 7, (7, 3, 0, 7, 5))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("field2", {"S": "1234:0:another text"}),
        ("field2", {"S": "1235:0:"}),
        ("score", {"N": "5"}),
        ("version", {"S": "7"}),
        ("category", {"S": "category#000000001"}),
        ("more", {"S": "than was written"}),
    ],
)
def test_a_changed_item_is_not_recognized(name: str, value: dict[str, str]):
    records = Records(plan(item_size="300"))
    item = msgspec.json.decode(records.item(1_234, 7, (7, 3, 0, 7, 5)))
    assert records.recognize(item | {name: value}) is None


def test_an_item_without_one_of_its_fields_is_not_recognized():
    records = Records(plan(item_size="300"))
    item = msgspec.json.decode(records.item(1_234, 7, (7,) * 5))
    del item["field4"]
    assert records.recognize(item) is None
