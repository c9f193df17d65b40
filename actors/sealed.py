"""What stands in a partition's place while it is being split."""

from __future__ import annotations

from typing import NamedTuple

from actors.runtime.mailbox import Mailbox


class Sealed(NamedTuple):
    """The messages that wait for the partition, or for its children.

    A sender finds a mailbox like any other, so that splitting costs nothing on its way.
    """

    mailbox: Mailbox
