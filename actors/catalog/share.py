"""The tables of one of several databases that share them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_SLOT_SHIFT: Final = 32


class Share(Struct, frozen=True):
    """The tables that one of several databases runs; the leader's share has epoch 0."""

    epoch: int = 0

    @property
    def is_leader(self) -> bool:
        """Whether this is the share of the leader."""
        return not self.epoch

    @property
    def node(self) -> str:
        """The name under which commits of the catalog are counted."""
        return "" if self.is_leader else f"share {self.epoch >> _SLOT_SHIFT}"
