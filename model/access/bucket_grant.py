"""The objects of buckets that a request may read and write.

An import or export uses objects long after its request, also after a restart. Its policies are
evaluated with the request: their conditions are decided then, and the patterns of their resources
are stored with the import or export. So a later change of policies, or the end of a session, does
not stop work that was allowed. AWS's services use the credentials of the request, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dynactor.model.access.decision import Denial, Grants, PolicyType, denial_text
from dynactor.model.access.policy import Effect
from dynactor.model.access.rules import Facts
from dynactor.model.access.templates import Matcher, arn_pattern, parse_template

READ: Final = "s3:GetObject"
WRITE: Final = "s3:PutObject"

_CACHED_PATTERNS: Final = 4_096


def bucket_arn(bucket: str) -> str:
    """The ARN of a bucket."""
    return f"arn:aws:s3:::{bucket}"


class ObjectStatement(Struct, frozen=True):
    """A statement about one action whose conditions hold.

    ``resources`` are patterns in the form of a policy, without variables.
    """

    policy_type: PolicyType
    effect: Effect
    action: str
    resources: tuple[str, ...]
    not_resources: bool = False

    def is_about(self, action: str, resource: str) -> bool:
        """Whether the statement is about an action on a resource."""
        if action != self.action:
            return False
        found = any(_matcher(pattern)(resource) for pattern in self.resources)
        return found != self.not_resources


class BucketGrant(Struct, frozen=True):
    """The objects that the caller of one request may read and write.

    ``has_session_policy``: a session policy restricts the caller. ``is_observed``: denied actions
    are only logged.
    """

    caller_arn: str
    statements: tuple[ObjectStatement, ...]
    has_session_policy: bool = False
    is_observed: bool = False

    def denial(self, action: str, bucket: str, key: str) -> str | None:
        """AWS's message if an action on an object is denied; None if it is allowed."""
        resource = f"{bucket_arn(bucket)}/{key}"
        found = {
            (one.policy_type, one.effect)
            for one in self.statements
            if one.is_about(action, resource)
        }
        denial: Denial | None = None
        if ("identity-based", "Deny") in found:
            denial = Denial("identity-based", is_explicit=True)
        elif ("session", "Deny") in found:
            denial = Denial("session", is_explicit=True)
        elif self.has_session_policy and ("session", "Allow") not in found:
            denial = Denial("session", is_explicit=False)
        elif ("identity-based", "Allow") not in found:
            denial = Denial("identity-based", is_explicit=False)
        return None if denial is None else denial_text(self.caller_arn, action, resource, denial)


def bucket_grant(grants: Grants, facts: Facts, *, is_observed: bool = False) -> BucketGrant:
    """The objects that a caller may read and write, with the condition keys of its request."""
    found = list(_statements(grants, facts))
    return BucketGrant(grants.principal.arn, tuple(found), grants.session is not None, is_observed)


def _statements(grants: Grants, facts: Facts) -> Iterator[ObjectStatement]:
    types: tuple[PolicyType, ...] = ("identity-based", "session")
    for policy_type, policies in zip(types, (grants.identity, grants.session), strict=True):
        for _, compiled in () if policies is None else policies.statements:
            statement = compiled.statement
            for action in (READ, WRITE):
                if compiled.names_action(action) and compiled.conditions_hold(facts):
                    yield ObjectStatement(
                        policy_type,
                        statement.effect,
                        action,
                        tuple(one.text for one in compiled.resources(facts)),
                        statement.not_resources,
                    )


@lru_cache(maxsize=_CACHED_PATTERNS)
def _matcher(pattern: str) -> Matcher:
    return arn_pattern(parse_template(pattern, wildcards=True, variables=True))
