"""Refuses requests that the policies of their callers do not allow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from dynactor.api.access.access_explanation import (
    MOST_DECISIONS,
    REQUEST_HEADER,
    RESPONSE_HEADER,
    AccessExplanation,
    header_text,
)
from dynactor.api.access.ask import Ask, Asking, AskRule
from dynactor.api.access.bucket_asks import ObjectsRule
from dynactor.api.access.facts import ActionFacts, RequestFacts
from dynactor.api.access.identities import IdentityRegistry
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.access.recorded_actions import RecordedActions
from dynactor.api.access.resource_policies import parsed_policy, resource_policy
from dynactor.api.access.sender import Sender
from dynactor.api.answers.explain import NO_EXPLANATIONS, is_wanted
from dynactor.api.requests.call import Call
from dynactor.model.access.bucket_grant import BucketGrant, bucket_grant
from dynactor.model.access.decision import Grants, denial_text
from dynactor.model.access.document import PolicyError
from dynactor.model.access.explanation import explained
from dynactor.model.errors import (
    ActionDeniedException,
    ValidationException,
)
from dynactor.model.tables.policy_rules import check_size

_PUT_POLICY: Final = "dynamodb:PutResourcePolicy"
_EXPLAIN: Final = REQUEST_HEADER.lower()


class CheckedOperation(Protocol):
    """The properties of an operation that policies concern."""

    @property
    def name(self) -> str: ...  # noqa: D102 - the class says it
    @property
    def asks(self) -> AskRule: ...  # noqa: D102
    @property
    def objects(self) -> ObjectsRule | None: ...  # noqa: D102


class AccessControl:
    """Checks requests with the policies of their callers."""

    def __init__(
        self,
        identities: IdentityRegistry,
        observed: ObservedDenials | None = None,
        *,
        explains: bool = False,
    ) -> None:
        """With ``observed``, denied actions are only logged, and all actions are recorded.

        ``explains``: callers may ask for the statements that decide.
        """
        self.identities = identities
        self._observed = observed
        self.recorded = None if observed is None else RecordedActions()
        self._explains = explains

    def check(
        self,
        access_key_id: str,
        operation: CheckedOperation,
        call: Call[Any],
        sender: Sender,
    ) -> BucketGrant | None:
        """Refuse a request if one of its actions is denied. Its signature has been verified.

        Returns the objects that the operation may use after its answer; None if it uses none.
        Raises ``ActionDeniedException`` if an action is denied, or a new resource policy would lock
        its caller out. Raises ``UnrecognizedClientException`` or ``ExpiredTokenException`` if the
        key is not valid any more; ``ValidationException`` if the name of a table is malformed.
        """
        grants = self.identities.grants(access_key_id, sender.headers, time.time())
        facts = RequestFacts(grants.principal, sender)
        asking = Asking(operation.name, call.request, call.database, facts)
        for ask in operation.asks(asking):
            if self.recorded is not None:
                self.recorded.note(grants.principal.principal_arn, ask)
            attached = resource_policy(asking, ask)
            denial = grants.denial(ask.action, ask.resource, ask.facts, attached)
            if denial is not None:
                text = denial_text(grants.principal.arn, ask.action, ask.resource, denial)
                if self._observed is None:
                    raise ActionDeniedException(text)
                self._observed.note(access_key_id, ask.action, ask.resource, text)
                continue
            if ask.action == _PUT_POLICY:
                _check_lockout(grants, ask, call.request)
        if operation.objects is None:
            return None
        object_facts = ActionFacts(facts)
        if self.recorded is not None:
            for objects in operation.objects(call.request):
                ask = Ask(objects.action, objects.resource, object_facts)
                self.recorded.note(grants.principal.principal_arn, ask, is_start=True)
        return bucket_grant(grants, object_facts, is_observed=self._observed is not None)

    def explanations(
        self, access_key_id: str, operation: CheckedOperation, call: Call[Any], sender: Sender
    ) -> Mapping[str, str]:
        """The header that explains the decision on a request, if its caller asks for it.

        A malformed request has no explanation: ``check`` refuses it. Raises
        ``UnrecognizedClientException`` or ``ExpiredTokenException`` as ``check``.
        """
        if not self._explains or not is_wanted(sender.headers.get(_EXPLAIN, "")):
            return NO_EXPLANATIONS
        grants = self.identities.grants(access_key_id, sender.headers, time.time())
        facts = RequestFacts(grants.principal, sender)
        asking = Asking(operation.name, call.request, call.database, facts)
        try:
            asks = [(ask, resource_policy(asking, ask)) for ask in operation.asks(asking)]
        except ValidationException:
            # ``check`` may deny an action before it finds this fault.
            return NO_EXPLANATIONS
        # Denied actions first.
        asks.sort(
            key=lambda one: (
                grants.denial(one[0].action, one[0].resource, one[0].facts, one[1]) is None
            )
        )
        decisions = tuple(
            explained(grants, ask.action, ask.resource, ask.facts, attached)
            for ask, attached in asks[:MOST_DECISIONS]
        )
        is_denied = bool(decisions) and decisions[0].decision == "deny"
        explanation = AccessExplanation(
            "deny" if is_denied else "allow",
            grants.principal.arn,
            len(asks),
            executed_anyway=is_denied and self._observed is not None,
            actions=decisions,
        )
        return {RESPONSE_HEADER: header_text(explanation)}


def _check_lockout(grants: Grants, ask: Ask, request: Any) -> None:
    """Refuse a new policy that denies its caller further changes, unless that is confirmed."""
    if getattr(request, "ConfirmRemoveSelfResourceAccess", None):
        return
    text = request.Policy if hasattr(request, "Policy") else request.ResourcePolicy
    try:
        check_size(text)
        new = parsed_policy(text)
    except (ValidationException, PolicyError):
        # The operation refuses the text.
        return
    if grants.denial(_PUT_POLICY, ask.resource, ask.facts, new) is not None:
        # AWS's error; the text is our own.
        raise ActionDeniedException(
            "The new resource-based policy will not allow you to update the policy in the future. "
            "Set ConfirmRemoveSelfResourceAccess to confirm that"
        )
