"""Refuses requests that the policies of their callers do not allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynactor.api.access.ask import Asking
from dynactor.api.access.facts import RequestFacts
from dynactor.api.access.operation_asks import RULES
from dynactor.api.access.sender import Sender
from dynactor.api.requests.operation import Call
from dynactor.model.access.decision import Grants, denial_text
from dynactor.model.errors import ActionDeniedException, UnrecognizedClientException


class AccessControl:
    """The policies of all access keys, by the id of the key."""

    def __init__(self, grants: Mapping[str, Grants]) -> None:
        self._grants = grants

    def replace(self, grants: Mapping[str, Grants]) -> None:
        """Use these policies from now on."""
        self._grants = grants

    def check(
        self,
        access_key_id: str,
        operation: str,
        call: Call[Any],
        sender: Sender,
    ) -> None:
        """Refuse a request if one of its actions is denied. Its signature has been verified.

        Raises:
            ActionDeniedException: an action is denied.
            ValidationException: the name of a table is malformed.
        """
        grants = self._grants.get(access_key_id)
        if grants is None:
            # The key was removed between the check of the signature and this check.
            raise UnrecognizedClientException(
                "The security token included in the request is invalid."
            )
        facts = RequestFacts(grants.principal, sender)
        for ask in RULES[operation](Asking(operation, call.request, call.database, facts)):
            denial = grants.denial(ask.action, ask.resource, ask.facts)
            if denial is not None:
                raise ActionDeniedException(
                    denial_text(grants.principal.arn, ask.action, ask.resource, denial)
                )
