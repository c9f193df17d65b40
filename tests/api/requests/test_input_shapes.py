"""Every operation's input has the members and constraints of botocore's service model.

Deliberate differences are listed here with their reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import pytest
from msgspec import Struct

from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.requests import shapes
from dynactor.api.requests.call import DYNAMODB, DYNAMODB_STREAMS
from dynactor.api.requests.hints import Hint, shape_members
from dynactor.model.values.json_types import INTEGER_MOST, LONG_MOST
from tests.support.clients.service_model import service_model

_MODELS = {
    DYNAMODB: service_model("dynamodb"),
    DYNAMODB_STREAMS: service_model("dynamodbstreams"),
}

_ONE_MEMBER_MORE = (
    "optional in the model for the sake of GlobalTableSourceArn, which is not served; "
    "without it DynamoDB asks for both"
)
_TWO_KEYS = "the service refuses more than two, which the model allows"

# The keys are a member and the kind of difference: "member", "type", "required", "min", "max",
# "pattern", "long" or "enum".
DIFFERENCES: dict[tuple[str, str], str] = {
    ("CreateTable.AttributeDefinitions", "required"): _ONE_MEMBER_MORE,
    ("CreateTable.KeySchema", "required"): _ONE_MEMBER_MORE,
    ("CreateTable.KeySchema", "max"): _TWO_KEYS,
    ("CreateTable.LocalSecondaryIndexes[].KeySchema", "max"): _TWO_KEYS,
    ("RestoreTableFromBackup.LocalSecondaryIndexOverride[].KeySchema", "max"): _TWO_KEYS,
    ("RestoreTableToPointInTime.LocalSecondaryIndexOverride[].KeySchema", "max"): _TWO_KEYS,
    ("ImportTable.TableCreationParameters.KeySchema", "max"): _TWO_KEYS,
}
# Shapes of the model whose constraints other code checks, for all inputs.
CHECKED_ELSEWHERE = {
    "TableArn": "a name and an ARN have limits of their own, see TableNameRule",
    "AttributeName": "its length is in bytes, and is checked with the item or expression",
    "AutoScalingPolicyName": "its pattern in the model, \\p{Print}+, is not one of Python",
    "AutoScalingRoleArn": "its pattern in the model is not one of Python",
    "AttributeValue": "dynactor.model.values.attribute_value checks it",
}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_input_equals_the_service_model(name: str):
    operation = OPERATIONS[name]
    shape = _MODELS[operation.service].operation_model(name).input_shape
    found = dict(_differences(name, shape, operation.input))
    assert set(found) == {key for key in DIFFERENCES if key[0].split(".")[0] == name}, found


def test_every_operation_of_the_model_is_implemented_or_listed_as_missing():
    of_model = {name for model in _MODELS.values() for name in model.operation_names}
    assert set(OPERATIONS) | NOT_IMPLEMENTED == of_model
    assert not set(OPERATIONS) & NOT_IMPLEMENTED


Difference = tuple[tuple[str, str], object]


def _differences(where: str, shape: Any, struct: type[Struct]) -> Iterator[Difference]:
    members = {member.name: member for member in shape_members(struct)}
    for extra in members.keys() ^ shape.members.keys():
        yield (f"{where}.{extra}", "member"), "missing on one side"
    for name in members.keys() & shape.members.keys():
        if members[name].required != (name in shape.required_members):
            yield (f"{where}.{name}", "required"), members[name].required
        yield from _value_differences(f"{where}.{name}", shape.members[name], members[name].hint)


def _value_differences(where: str, shape: Any, hint: Hint) -> Iterator[Difference]:
    if shape.name in CHECKED_ELSEWHERE and (
        hint.table_name is not None or hint.type in (shapes.AttributeValue, str)
    ):
        return
    python_type = {
        "structure": hint.kind if isinstance(hint.kind, type) else None,
        "list": list,
        "map": dict,
        "string": Literal if shape.type_name == "string" and shape.enum else str,
        "integer": int,
        "long": int,
        "boolean": bool,
        "double": float,
        "timestamp": float,
    }[shape.type_name]
    if hint.kind is not python_type:
        yield (where, "type"), hint.kind
        return
    yield from _constraint_differences(where, shape, hint)
    if shape.type_name == "structure":
        yield from _differences(where, shape, hint.type)
    elif shape.type_name == "list":
        yield from _value_differences(f"{where}[]", shape.member, hint.elements)
    elif shape.type_name == "map":
        yield from _value_differences(f"{where}{{}}", shape.key, hint.keys)
        yield from _value_differences(f"{where}[]", shape.value, hint.elements)


def _constraint_differences(where: str, shape: Any, hint: Hint) -> Iterator[Difference]:
    numeric = shape.type_name in ("integer", "long")
    most = LONG_MOST if shape.type_name == "long" else INTEGER_MOST
    of_model = {"min": -most - 1, "max": most} if numeric else {}
    of_model |= {
        name: limit
        for name, limit in shape.metadata.items()
        if name in ("min", "max", "pattern") and (numeric or limit != 0)
    }
    limits = hint.limits
    ours = {
        "min": limits.ge if numeric else limits.min_length,
        "max": limits.le if numeric else limits.max_length,
        "pattern": limits.pattern and limits.pattern.removeprefix("^").removesuffix(r"\Z"),
    }
    for name, limit in ours.items():
        if limit != of_model.get(name) and shape.name not in CHECKED_ELSEWHERE:
            yield (where, name), limit
    if hint.is_long != (shape.type_name == "long"):
        yield (where, "long"), hint.is_long
    if hint.kind is Literal and set(get_args(hint.type)) != set(shape.enum):
        yield (where, "enum"), get_args(hint.type)
