"""GetResourcePolicy."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import POLICY_ARN_ERRORS
from dynactor.api.requests.inputs import GetResourcePolicyInput
from dynactor.api.requests.policy_resource import find_resource
from dynactor.model.errors import PolicyNotFoundException
from dynactor.model.tables.policy_rules import NOT_FOUND, find


def handle(call: Call[GetResourcePolicyInput]) -> bytes:
    """The policy of a table or stream, with its revision."""
    arn = call.request.ResourceArn
    resource = find_resource(call.database, arn)
    policy = find(resource.table.policies, resource.stream_label)
    if policy is None:
        raise PolicyNotFoundException(f"{NOT_FOUND}{arn}")
    return json.encode({"Policy": policy.text, "RevisionId": policy.revision_id})


OPERATION = Operation(
    GetResourcePolicyInput,
    handle,
    asks=asks.member("ResourceArn"),
    effect=Effect.READS,
    location=Location.HOME,
    arn_errors=POLICY_ARN_ERRORS,
)
