"""Any JSON is decoded into an input or DynamoDB's error; msgspec and our own decoder agree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.hints import shape_members
from dynactor.api.requests.input_decoder import InputDecoder, _parse, _Walk
from dynactor.api.requests.validation_errors import OLDER
from dynactor.model.errors import SerializationException, ValidationException

_NAMES = sorted(
    {member.name for operation in OPERATIONS.values() for member in shape_members(operation.input)}
    | {"S", "N", "M", "L", "BOOL", "Keys", "Key", "Item", "AttributeName", "KeyType", "Projection"}
    | {"PutRequest", "DeleteRequest", "ComparisonOperator", "AttributeValueList", "Value", "Create"}
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    # Numbers near the limits of Java's integer types.
    st.sampled_from([sign * (1 << bits) + 1 for sign in (1, -1) for bits in (31, 63)]),
    st.sampled_from([sign * (1 << bits) - 1 for sign in (1, -1) for bits in (31, 63)]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "ab", "abc", "a;", "arn:aws:dynamodb:l:1:table/abc", "ALL", "EQ", "NONE"]),
    st.text(max_size=5),
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(_NAMES), st.text(max_size=3)), inner, max_size=4),
    ),
    max_leaves=12,
)


def _body(name: str) -> st.SearchStrategy[dict[str, Any]]:
    members = [member.name for member in shape_members(OPERATIONS[name].input)] or ["Any"]
    return st.dictionaries(st.sampled_from(members), _JSON, max_size=len(members))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_json_is_an_input_or_dynamodb_s_error(name: str, data: st.DataObject):
    shape = OPERATIONS[name].input
    body = msgspec.json.encode(data.draw(_body(name)))
    try:
        decoded = InputDecoder(shape).decode(body)
    except (SerializationException, ValidationException):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=shape)
        return
    assert type(decoded) is shape


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_slow_path_accepts_everything_that_msgspec_accepts(name: str, data: st.DataObject):
    shape = OPERATIONS[name].input
    body = msgspec.json.encode(data.draw(_body(name)))
    try:
        decoded = msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError:
        return
    walk = _Walk()
    try:
        corrected = walk.visit_input(_parse(body), shape)
    except SerializationException:
        # The value is within an attribute value, which msgspec does not check.
        return
    walk.raise_violations(OLDER)
    assert msgspec.convert(corrected, shape) == decoded
