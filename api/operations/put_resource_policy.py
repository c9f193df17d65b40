"""PutResourcePolicy."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.table.messages import UpdateTable
from dynactor.api.access import asks
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import POLICY_ARN_ERRORS
from dynactor.api.requests.inputs import PutResourcePolicyInput
from dynactor.api.requests.policy_resource import check_policy, find_resource, is_of_stream
from dynactor.model.tables.policy_rules import PolicyChange, find
from dynactor.model.tables.table_edits import TableEdit


async def handle(call: Call[PutResourcePolicyInput]) -> bytes:
    """Attach a policy to a table or stream, or replace its policy.

    ConfirmRemoveSelfResourceAccess is checked with the caller's permissions.
    """
    request = call.request
    check_policy(request.Policy, is_of_stream=is_of_stream(request.ResourceArn))
    resource = find_resource(call.database, request.ResourceArn)
    change = PolicyChange(
        resource.table.name, resource.stream_label, request.Policy, request.ExpectedRevisionId
    )
    state = await call.database.ask(UpdateTable(resource.table.name, TableEdit(policy=change)))
    policy = find(state.definition.policies, resource.stream_label)
    assert policy is not None, "the policy was attached by the same message"
    return json.encode({"RevisionId": policy.revision_id})


OPERATION = Operation(
    PutResourcePolicyInput,
    handle,
    asks=asks.member("ResourceArn"),
    location=Location.HOME,
    arn_errors=POLICY_ARN_ERRORS,
)
