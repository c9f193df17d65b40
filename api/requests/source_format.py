"""The formats of files that the server can read."""

from __future__ import annotations

from dynactor.model.errors import ValidationException
from dynactor.storage.buckets.ion_records import IonDecoder, IonMissing


def check_ion() -> None:
    """Refuse Ion if its package is not installed; raises ``ValidationException``."""
    try:
        IonDecoder()
    except IonMissing:
        raise ValidationException(
            "InputFormat ION needs the extra dynactor[ion] of the server"
        ) from None
