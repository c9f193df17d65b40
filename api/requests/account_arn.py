"""Refuses ARNs of other accounts, as AWS does."""

from __future__ import annotations

from typing import Final

from dynactor.actors.catalog.database import Database
from dynactor.model.errors import ActionDeniedException

_ACCOUNT: Final = 4


def check_account(database: Database, arn: str) -> None:
    """Refuse an ARN of another account; a text without an account passes.

    Raises:
        ActionDeniedException: the ARN has another account.
    """
    fields = arn.split(":")
    if len(fields) > _ACCOUNT and fields[_ACCOUNT] != database.settings.account_id:
        raise ActionDeniedException("Access is denied")
