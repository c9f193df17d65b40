"""Settings with secrets, whose text may be logged."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class SecretFields(Struct, frozen=True):
    """A base whose ``repr`` leaves out the values of the fields named in ``secret_fields``."""

    secret_fields: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        """Omit the secrets."""
        shown = (
            f"{name}={'…' if name in self.secret_fields else repr(getattr(self, name))}"
            for name in self.__struct_fields__
        )
        return f"{type(self).__name__}({', '.join(shown)})"
