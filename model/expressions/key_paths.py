"""The rule that no expression reads inside a key attribute, which is never a map or list."""

from __future__ import annotations

from collections.abc import Collection

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException


def check_scalar_keys(table: TableDefinition, nested: Collection[str]) -> None:
    """Refuse paths into key attributes of the table or its indexes; raises ``ValidationException``.

    ``nested`` are the attributes with a path into them, such as ``a`` of ``a.b``
    (``Placeholders.nested``).
    """
    if not nested:
        return
    for attribute in table.key_schema.attributes:
        if attribute.name in nested:
            raise _not_scalar("Key", attribute.name)
    global_indexes = [index.definition for index in table.global_indexes]
    for index in (*global_indexes, *table.local_indexes):
        for attribute in index.key_schema.attributes:
            if attribute.name in nested:
                raise _not_scalar("IndexKey", attribute.name)


def _not_scalar(role: str, name: str) -> ValidationException:
    return ValidationException(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
        f"allowed: {role}: {name}"
    )
