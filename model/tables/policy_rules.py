"""Rules for the resource policies of a table and its streams: revisions, size.

Source: API reference, PutResourcePolicy and DeleteResourcePolicy.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.definitions.table import AttachedPolicy
from dynactor.model.errors import PolicyNotFoundException, invalid_value
from dynactor.model.limits import RESOURCE_POLICY_BYTES

# The expected revision of a resource without a policy.
NO_POLICY: Final = "NO_POLICY"
NOT_FOUND: Final = "Resource-based policy not found for the provided ResourceArn: "

_MILLISECONDS: Final = 1_000


class PolicyChange(Struct, frozen=True):
    """A new policy of a table or of its stream with a label; no ``text`` removes the policy.

    The size of ``text`` has been checked. ``table_name`` is for messages.
    """

    table_name: str
    stream_label: str
    text: str | None
    expected_revision_id: str | None = None


def check_size(text: str) -> None:
    """Refuse a text that is too large for a policy; raises ``ValidationException``."""
    if len(text.encode()) > RESOURCE_POLICY_BYTES:
        raise invalid_value(f"Maximum policy size of {RESOURCE_POLICY_BYTES} bytes exceeded")


def new_policy(text: str, now_epoch_seconds: float, stream_label: str = "") -> AttachedPolicy:
    """A policy, whose size has been checked, with its revision."""
    return AttachedPolicy(stream_label, text, str(int(now_epoch_seconds * _MILLISECONDS)))


def find(policies: tuple[AttachedPolicy, ...], stream_label: str) -> AttachedPolicy | None:
    """The policy of the table, or of the stream with this label."""
    for policy in policies:
        if policy.stream_label == stream_label:
            return policy
    return None


def _other_revision(change: PolicyChange, current: AttachedPolicy | None) -> str:
    table = f"table {change.table_name}"
    if change.expected_revision_id == NO_POLICY:
        assert current is not None
        return (
            f"Requested policy update expecting none to be present for {table}, but a policy "
            f"exists with revision id {current.revision_id}."
        )
    # The words for a table without a policy are inferred.
    found = (
        f"no policy is associated to target {table}."
        if current is None
        else f"the policy associated to target {table} has revision id {current.revision_id}."
    )
    return (
        f"Requested update for policy with revision id {change.expected_revision_id}, but {found}"
    )


def changed(
    policies: tuple[AttachedPolicy, ...], change: PolicyChange, now_epoch_seconds: float
) -> tuple[AttachedPolicy, ...]:
    """Changed policies; an equal text keeps its revision. Raises ``PolicyNotFoundException``."""
    current = find(policies, change.stream_label)
    expected = change.expected_revision_id
    revision_id = NO_POLICY if current is None else current.revision_id
    if expected is not None and expected != revision_id:
        raise PolicyNotFoundException(f"{NOT_FOUND}{_other_revision(change, current)}")
    others = tuple(policy for policy in policies if policy is not current)
    if change.text is None:
        return others
    new = new_policy(change.text, now_epoch_seconds, change.stream_label)
    if current is not None:
        if current.text == new.text:
            return policies
        # Revisions rise, even within a millisecond.
        revision = max(int(new.revision_id), int(current.revision_id) + 1)
        new = replace(new, revision_id=str(revision))
    return (*others, new)
