"""DeleteResourcePolicy."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.table.messages import UpdateTable
from dynactor.api.access import asks
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import POLICY_ARN_ERRORS
from dynactor.api.requests.inputs import DeleteResourcePolicyInput
from dynactor.api.requests.policy_resource import find_resource
from dynactor.model.tables.policy_rules import PolicyChange, find
from dynactor.model.tables.table_edits import TableEdit


async def handle(call: Call[DeleteResourcePolicyInput]) -> bytes:
    """Remove the policy of a table or stream. Without a policy, there is nothing to remove."""
    request = call.request
    resource = find_resource(call.database, request.ResourceArn)
    removed = find(resource.table.policies, resource.stream_label)
    change = PolicyChange(
        resource.table.name, resource.stream_label, None, request.ExpectedRevisionId
    )
    await call.database.ask(UpdateTable(resource.table.name, TableEdit(policy=change)))
    return json.encode({} if removed is None else {"RevisionId": removed.revision_id})


OPERATION = Operation(
    DeleteResourcePolicyInput,
    handle,
    asks=asks.member("ResourceArn"),
    location=Location.HOME,
    arn_errors=POLICY_ARN_ERRORS,
)
