"""The names and messages of refusals, compared with botocore's service model."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, cast

import pytest
from botocore.loaders import Loader
from msgspec import json

from dynactor.model.throttling.refusal import LimitType, Refusal, refusal

SHAPES: dict[str, Any] = Loader().load_service_model("dynamodb", "service-2")["shapes"]


def plain(documentation: str) -> str:
    return re.sub(r"<[^>]*>", "", documentation)


REASONS = plain(SHAPES["ThrottlingReason"]["members"]["reason"]["documentation"])
CANCELLATIONS = plain(SHAPES["TransactionCanceledException"]["documentation"])


def made(limit: LimitType, mode: str = "PROVISIONED", *, is_index: bool = False) -> Refusal:
    return refusal("Write", limit, cast("Any", mode), "arn", is_index=is_index)


def test_every_limit_type_of_the_documentation_is_known():
    listed = set(re.findall(r"(\w+Exceeded): The request rate", REASONS))

    known = {made(limit).reasons[0].reason.removeprefix("TableWrite") for limit in LimitType}
    assert known == listed


@pytest.mark.parametrize(
    "name", ["TableReadProvisionedThroughputExceeded", "IndexWriteAccountLimitExceeded"]
)
def test_the_examples_of_the_documentation_equal_the_generated_messages(name):
    names = {
        refusal(operation, limit, "PROVISIONED", "arn", is_index=is_index).reasons[0].reason
        for operation, limit, is_index in product(("Read", "Write"), LimitType, (False, True))
    }

    assert name in REASONS
    assert name in names
    assert len(names) == 16


@pytest.mark.parametrize("is_index", [False, True])
@pytest.mark.parametrize("mode", ["PROVISIONED", "PAY_PER_REQUEST"])
def test_messages_and_codes_are_those_of_cancelled_transactions(mode, is_index):
    refused = made(LimitType.KEY_RANGE, mode, is_index=is_index)

    assert refused.message in CANCELLATIONS
    assert f"Code: {refused.cancellation_code} " in CANCELLATIONS


@pytest.mark.parametrize(
    ("limit", "mode"),
    [
        (LimitType.PROVISIONED, "PROVISIONED"),
        (LimitType.KEY_RANGE, "PAY_PER_REQUEST"),
        (LimitType.ACCOUNT, "PAY_PER_REQUEST"),
    ],
)
def test_an_error_on_the_wire_has_the_members_of_its_shape(limit, mode):
    error = made(limit, mode).error()
    members = json.decode(json.encode(error.members()))

    shape = SHAPES[type(error).__name__]["members"]
    assert members.keys() == shape.keys()
    (reasons,) = (value for name, value in members.items() if name != "message")
    assert reasons[0].keys() == SHAPES["ThrottlingReason"]["members"].keys()
