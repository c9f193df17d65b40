"""Pseudonyms: equal for equal values, unique, of the same type, and in nested values."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.api.commands.tables.anonymizer import AnonymizeOptions, Anonymizer
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.values import item as items

KEY = {"pk": "S"}


def anonymizer(*rules: str, seed: str = "secret") -> Anonymizer:
    found = AnonymizeOptions(anonymize=rules, seed=seed).anonymizer(KEY)
    assert found is not None
    return found


def hashed(value: dict[str, Any], seed: str = "secret") -> Any:
    changed = anonymizer("a=hash", seed=seed).changed({"a": value})
    items.check(changed)
    return changed["a"]


@pytest.mark.parametrize("type_name", ["S", "N", "B"])
def test_equal_values_have_equal_pseudonyms_of_their_type(type_name: str):
    one, other = {"S": ("x", "y"), "N": ("1", "2"), "B": ("AAE=", "AAI=")}[type_name]
    first = hashed({type_name: one})
    assert first.keys() == {type_name}
    assert first != {type_name: one}
    assert first == hashed({type_name: one})
    assert first != hashed({type_name: other})
    assert first != hashed({type_name: one}, seed="other")


def test_a_value_has_the_same_pseudonym_at_every_place():
    changed = anonymizer("a=hash", "b=hash", "l[*]=hash").changed(
        {"a": {"S": "x"}, "b": {"SS": ["x"]}, "l": {"L": [{"S": "x"}, {"M": {"m": {"S": "x"}}}]}}
    )
    pseudonym = changed["a"]["S"]
    assert changed["b"] == {"SS": [pseudonym]}
    assert changed["l"] == {"L": [{"S": pseudonym}, {"M": {"m": {"S": pseudonym}}}]}


def test_sets_keep_their_number_of_elements_in_canonical_order():
    numbers = hashed({"NS": [str(number) for number in range(50)]})["NS"]
    assert len(set(numbers)) == 50
    texts = hashed({"SS": [f"t{number}" for number in range(50)]})["SS"]
    assert texts == sorted(set(texts))
    assert len(texts) == 50


def test_nested_paths_name_members_of_maps_and_of_the_elements_of_lists():
    changes = anonymizer("a.b[*].c=drop", "a.d=fake:email")
    item = {
        "pk": {"S": "k"},
        "a": {
            "M": {
                "b": {"L": [{"M": {"c": {"S": "x"}, "e": {"N": "1"}}}, {"S": "other"}]},
                "d": {"S": "ann@shop.com"},
                "f": {"BOOL": True},
            }
        },
    }
    changed = changes.changed(item)["a"]["M"]
    assert changed["b"] == {"L": [{"M": {"e": {"N": "1"}}}, {"S": "other"}]}
    assert changed["d"]["S"].endswith("@example.com")
    assert "ann" not in changed["d"]["S"]
    assert changes.unnamed == ("pk", "a.b[*].e", "a.b[*]", "a.f")
    # The given item is unchanged.
    assert item["a"]["M"]["d"] == {"S": "ann@shop.com"}


def test_dropped_attributes_and_elements_are_left_out():
    changed = anonymizer("a=drop", "l[*]=drop").changed({"a": {"S": "x"}, "l": {"L": [{"S": "y"}]}})
    assert changed == {"l": {"L": []}}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("pk=drop", "part of the key"),
        ("a=mask", "not understood"),
        ("a", "not understood"),
        ("a..b=hash", "not understood"),
        ("a[0]=hash", "not understood"),
    ],
)
def test_a_wrong_rule_is_refused(rule: str, message: str):
    with pytest.raises(TransferFailed, match=message):
        anonymizer(rule)


def test_pseudonyms_need_a_seed():
    with pytest.raises(TransferFailed, match="--seed"):
        AnonymizeOptions(anonymize=("a=hash",)).anonymizer(KEY)
    with pytest.raises(TransferFailed, match="--seed"):
        AnonymizeOptions(anonymize=("a=hash",), seed="").anonymizer(KEY)
    assert AnonymizeOptions(anonymize=("a=drop",)).anonymizer(KEY) is not None
    assert AnonymizeOptions().anonymizer(KEY) is None


def test_a_number_in_a_key_can_not_be_an_address():
    with pytest.raises(TransferFailed, match="not a string"):
        AnonymizeOptions(anonymize=("pk=fake:email",), seed="s").anonymizer({"pk": "N"})
