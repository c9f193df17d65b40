"""Strategies for attribute values, items and sort keys; numbers come in canonical form."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Value = dict[str, Any]
Item = dict[str, Value]

# Few distinct values, so that two random values are often equal.
texts = st.sampled_from(("a", "ab", "abc", "b", "B", "é", "日本", "~"))
numbers = st.sampled_from(("0", "1", "2", "3", "10", "-1", "-2.5", "1.5", "1000", "0.001"))
binaries = st.sampled_from((b"a", b"ab", b"\x00", b"\x00\x01", b"\xff", b"\xff\xff\xff\x01")).map(
    lambda raw: b64encode(raw).decode()
)

strings = st.builds(lambda text: {"S": text}, texts)
number_values = st.builds(lambda text: {"N": text}, numbers)
binary_values = st.builds(lambda text: {"B": text}, binaries)
string_sets = st.sets(texts, min_size=1, max_size=3).map(lambda held: {"SS": sorted(held)})
number_sets = st.sets(numbers, min_size=1, max_size=3).map(
    lambda held: {"NS": sorted(held, key=Decimal)}
)
scalars = st.one_of(
    strings,
    number_values,
    binary_values,
    st.sampled_from(({"BOOL": True}, {"BOOL": False}, {"NULL": True})),
)
members = st.sampled_from(("x", "y", "z"))
values = st.recursive(
    st.one_of(scalars, string_sets, number_sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda held: {"L": held}),
        st.dictionaries(members, inner, max_size=3).map(lambda held: {"M": held}),
    ),
    max_leaves=5,
)
lists = st.lists(values, max_size=3).map(lambda held: {"L": held})
maps = st.dictionaries(members, values, max_size=3).map(lambda held: {"M": held})

# The attributes besides the key; each usually holds its own type.
attributes: dict[str, st.SearchStrategy[Value]] = {
    "a": values,
    "b": values,
    "n": st.one_of(number_values, number_values, values),
    "m": st.one_of(maps, maps, values),
    "l": st.one_of(lists, lists, values),
    "ss": st.one_of(string_sets, string_sets, values),
    "ns": st.one_of(number_sets, number_sets, values),
}
items: st.SearchStrategy[Item] = st.fixed_dictionaries({}, optional=attributes)


def comparable(node: Any) -> Any:
    """A value or item with sorted sets, for comparison with ``==``."""
    if isinstance(node, dict):
        return {
            name: sorted(member) if name in ("SS", "NS", "BS") and isinstance(member, list)
            else comparable(member)
            for name, member in node.items()
        }  # fmt: skip
    if isinstance(node, list):
        return [comparable(member) for member in node]
    return node


def multiset(found: list[Item]) -> list[str]:
    """Items in a canonical order, for comparison where DynamoDB promises none."""
    return sorted(json.dumps(comparable(item), sort_keys=True) for item in found)
