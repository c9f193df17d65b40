"""The operations of STS: AssumeRole, GetCallerIdentity and GetSessionToken.

Source: AWS STS API reference; real time, as for signatures.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from secrets import choice
from typing import Final, Protocol

from dynactor.api.access.facts import ActionFacts, RequestFacts
from dynactor.api.access.identities import IdentityRegistry, Role
from dynactor.api.access.sender import Sender
from dynactor.api.keys.session_tokens import Session, SessionTokens, SessionTooLarge
from dynactor.api.keys.signature import Signatures
from dynactor.api.sts.query_protocol import (
    StsError,
    answer,
    element,
    error_answer,
    members,
    parse_form,
    time_text,
)
from dynactor.model.access.decision import Denial, Grants, denial_text, trust_denial
from dynactor.model.access.document import PolicyError
from dynactor.model.access.policy import parse_policy
from dynactor.model.access.principal import Principal, role_session
from dynactor.model.errors import (
    DynamoDBError,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)

SERVICE: Final = "sts"

_ROLE_ARN: Final = re.compile(r"arn:aws:iam::([0-9]{12}):role/([A-Za-z0-9+=,.@_-]{1,64})\Z")
_SESSION_NAME: Final = re.compile(r"[A-Za-z0-9_+=,.@-]{2,64}\Z")
_SECONDS: Final = re.compile(r"[0-9]{1,9}\Z")
_LEAST_SECONDS: Final = 900
_DEFAULT_ROLE_SECONDS: Final = 3_600
_MOST_USER_SECONDS: Final = 129_600
_DEFAULT_USER_SECONDS: Final = 43_200
# A role that was assumed by a session of a role.
_MOST_CHAINED_SECONDS: Final = 3_600
_MOST_TAGS: Final = 50
_POLICY_CHARACTERS: Final = 2_048
_ID_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_ID_CHARACTERS: Final = 16
_ASSUME: Final = "sts:AssumeRole"
_TAG: Final = "sts:TagSession"


class StsFacts(ActionFacts):
    """The condition keys of AssumeRole."""

    __slots__ = ("_form", "_tags")

    def __init__(
        self, request: RequestFacts, form: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        super().__init__(request)
        self._form = form
        self._tags = tags

    def _derived(self, key: str) -> Sequence[str] | None:
        member = {"sts:externalid": "ExternalId", "sts:rolesessionname": "RoleSessionName"}.get(key)
        if member is None:
            return super()._derived(key)
        value = self._form.get(member)
        return None if value is None else (value,)

    def tags(self) -> Mapping[str, str]:
        """The tags of the session."""
        return self._tags


class FormRequest(Sender, Protocol):
    """A POST of a form."""

    @property
    def body(self) -> bytes: ...  # noqa: D102 - the form


# The codes of STS for errors of signatures, with their statuses.
_SIGNATURE_CODES: Final[dict[type[DynamoDBError], str]] = {
    ExpiredTokenException: "ExpiredToken",
    IncompleteSignatureException: "IncompleteSignature",
    InvalidSignatureException: "SignatureDoesNotMatch",
    MissingAuthenticationTokenException: "MissingAuthenticationToken",
    UnrecognizedClientException: "InvalidClientTokenId",
}


def _signature_error(error: DynamoDBError) -> StsError:
    return StsError(_SIGNATURE_CODES[type(error)], error.message, HTTPStatus.FORBIDDEN.value)


class TokenService:
    """Answers requests for temporary credentials."""

    def __init__(
        self,
        tokens: SessionTokens,
        registry: IdentityRegistry,
        signatures: Signatures | None,
        account: str,
    ) -> None:
        """Without ``signatures`` every caller is the root user of the account."""
        self._tokens = tokens
        self._registry = registry
        self._signatures = signatures
        self._account = account
        arn = f"arn:aws:iam::{account}:root"
        self._root = Grants(Principal(arn, account, account, arn, "root"), ())

    def answer(self, request: FormRequest, request_id: str) -> tuple[int, bytes]:
        """The status and the XML for a form."""
        now = time.time()
        try:
            form = parse_form(request.body)
            try:
                caller = self._caller(request, now)
            except DynamoDBError as error:
                raise _signature_error(error) from None
            result = self._perform(form, caller, request, now)
        except StsError as error:
            return error.http_status, error_answer(error, request_id)
        return HTTPStatus.OK.value, answer(form["Action"], result, request_id)

    def _caller(self, request: FormRequest, now_epoch_seconds: float) -> Grants:
        if self._signatures is None:
            return self._root
        access_key_id = self._signatures.check(
            request.headers, request.query, request.body, now_epoch_seconds, SERVICE
        )
        return self._registry.grants(access_key_id, request.headers, now_epoch_seconds)

    def _perform(
        self, form: Mapping[str, str], caller: Grants, sender: Sender, now_epoch_seconds: float
    ) -> str:
        """The XML of a result; raises ``StsError``."""
        match form.get("Action", ""):
            case "GetCallerIdentity":
                return self._caller_identity(caller)
            case "GetSessionToken":
                return self._session_token(form, caller, now_epoch_seconds)
            case "AssumeRole":
                return self._assume_role(form, caller, sender, now_epoch_seconds)
            case action:
                raise StsError(
                    "InvalidAction",
                    f"Could not find operation {action} for version {form.get('Version', '')}",
                )

    @staticmethod
    def _caller_identity(caller: Grants) -> str:
        principal = caller.principal
        return (
            element("Arn", principal.arn)
            + element("UserId", principal.user_id)
            + element("Account", principal.account)
        )

    def _session_token(
        self, form: Mapping[str, str], caller: Grants, now_epoch_seconds: float
    ) -> str:
        user = caller.principal.user_name
        if user is None or caller.is_session:
            raise StsError(
                "AccessDenied", "Cannot call GetSessionToken with session credentials", 403
            )
        seconds = _duration(form, _DEFAULT_USER_SECONDS, _MOST_USER_SECONDS)
        return self._credentials(
            Session(_new_key_id(), int(now_epoch_seconds) + seconds, user=user)
        )

    def _assume_role(
        self,
        form: Mapping[str, str],
        caller: Grants,
        sender: Sender,
        now_epoch_seconds: float,
    ) -> str:
        arn = form.get("RoleArn", "")
        name = form.get("RoleSessionName", "")
        if _SESSION_NAME.match(name) is None:
            raise StsError("ValidationError", "RoleSessionName must have 2 to 64 characters")
        found = _ROLE_ARN.match(arn)
        if found is None:
            raise StsError("ValidationError", f"{arn} is invalid")
        if members(form, "PolicyArns"):
            raise StsError("ValidationError", "PolicyArns are not supported by dynactor")
        tags = _tags(form)
        role = self._registry.identities.roles.get(found[2]) if found[1] == self._account else None
        facts = StsFacts(RequestFacts(caller.principal, sender), form, tags)
        for action in (_ASSUME, _TAG) if tags else (_ASSUME,):
            _check_trust(caller, role, action, arn, facts)
        assert role is not None, "a missing role is refused"
        policy = form.get("Policy")
        if policy is not None:
            _check_policy(policy)
        most = role.max_session_seconds
        if caller.principal.user_name is None:
            most = min(most, _MOST_CHAINED_SECONDS)
        seconds = _duration(form, min(_DEFAULT_ROLE_SECONDS, most), most)
        session = Session(
            _new_key_id(),
            int(now_epoch_seconds) + seconds,
            user=caller.user_name,
            role=role.name,
            name=name,
            tags=tags,
            policy=policy,
        )
        principal = role_session(role.name, name, self._account, {})
        identifier = element("AssumedRoleId", principal.user_id) + element("Arn", principal.arn)
        return self._credentials(session) + f"<AssumedRoleUser>{identifier}</AssumedRoleUser>"

    def _credentials(self, session: Session) -> str:
        try:
            token, secret = self._tokens.issue(session)
        except SessionTooLarge:
            raise StsError(
                "PackedPolicyTooLarge", "The policy and the tags of the session are too large"
            ) from None
        return (
            "<Credentials>"
            + element("AccessKeyId", session.access_key_id)
            + element("SecretAccessKey", secret)
            + element("SessionToken", token)
            + element("Expiration", time_text(session.expires_epoch_seconds))
            + "</Credentials>"
        )


def _check_trust(caller: Grants, role: Role | None, action: str, arn: str, facts: StsFacts) -> None:
    """Refuse a caller whom the role does not trust. A missing role gives the same error."""
    denial: Denial | None = Denial("identity-based", is_explicit=False)
    if role is not None:
        denial = trust_denial(caller, role.trust, action, arn, facts)
    if denial is not None:
        raise StsError("AccessDenied", denial_text(caller.principal.arn, action, arn, denial), 403)


def _check_policy(text: str) -> None:
    if len(text) > _POLICY_CHARACTERS:
        raise StsError(
            "ValidationError", f"Policy must have at most {_POLICY_CHARACTERS} characters"
        )
    try:
        parse_policy(text, "session", "session")
    except PolicyError as error:
        raise StsError("MalformedPolicyDocument", str(error)) from None


def _duration(form: Mapping[str, str], default: int, most: int) -> int:
    text = form.get("DurationSeconds")
    if text is None:
        return default
    if _SECONDS.match(text) is None or int(text) < _LEAST_SECONDS:
        raise StsError(
            "ValidationError", f"DurationSeconds must be a number of at least {_LEAST_SECONDS}"
        )
    if int(text) > most:
        raise StsError(
            "ValidationError",
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        )
    return int(text)


def _tags(form: Mapping[str, str]) -> dict[str, str]:
    given = members(form, "Tags")
    if len(given) > _MOST_TAGS or not all(tag.get("Key") and "Value" in tag for tag in given):
        raise StsError("ValidationError", f"Tags must be at most {_MOST_TAGS} keys with values")
    if len({tag["Key"].lower() for tag in given}) < len(given):
        raise StsError(
            "InvalidParameterValue",
            "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
        )
    return {tag["Key"]: tag["Value"] for tag in given}


def _new_key_id() -> str:
    return "ASIA" + "".join(choice(_ID_LETTERS) for _ in range(_ID_CHARACTERS))
