"""Decides a single message in the turn of its sender, without an await."""

from __future__ import annotations

from dynactor.actors.partition.roles import BatchT, Core, Effects, Outcome
from dynactor.actors.runtime.mailbox import Envelope
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import NotCached, View


def decide_nowait(
    core: Core[BatchT],
    effects: Effects[BatchT],
    rows: View,
    head: PartitionHead,
    envelope: Envelope,
) -> tuple[BatchT, Outcome] | None:
    """A batch of one message, and its outcome; None if the partition's loop must decide it.

    Nothing but the message's payment is kept, so the loop can decide it again.
    """
    message = envelope.message
    values: list[bytes | None] = []
    try:
        batch = core.open(head, [message])
        for key in core.row_keys(batch):
            value = rows.cached(key)
            if isinstance(value, NotCached):
                return None
            values.append(value)
        core.fill(batch, values)
        effects.loaded(batch)
        decision = effects.charge(envelope, core.decide(batch, message))
        outcome = core.apply(batch, message, decision)
    except Exception:  # noqa: BLE001 - the loop meets the same error, and is started again
        return None
    return batch, (envelope, outcome)
