"""The resource of a resource policy: a table, or one of its streams."""

from __future__ import annotations

from typing import Final, NamedTuple

from dynactor.actors.database.database import Database
from dynactor.api.requests import stream_arn
from dynactor.api.requests.resource_arn import invalid, tagged_table_name
from dynactor.model.access.document import MissingElement, PolicyError
from dynactor.model.access.new_resource_policy import check_new
from dynactor.model.access.policy import parse_policy
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.tables.policy_rules import check_size

_ARN_FIELDS: Final = 6
_PARTITION: Final = "aws"


class PolicyResource(NamedTuple):
    """A table, or its stream with a label."""

    table: TableDefinition
    stream_label: str


def find_resource(database: Database, arn: str) -> PolicyResource:
    """The table or stream with this ARN.

    Raises ``ValidationException`` or ``ResourceNotFoundException``.
    """
    if is_of_stream(arn):
        stream = stream_arn.find_stream(database, arn)
        name, label = stream.table_name, stream.label
    else:
        name, label = tagged_table_name(arn), ""
    # ``foreign_arns`` checks the region.
    _, partition, _, _, account, _ = arn.split(":", _ARN_FIELDS - 1)
    if partition != _PARTITION or account != database.settings.account_id:
        # AWS refuses these with a ValidationException; the text is inferred.
        raise invalid(arn)
    return PolicyResource(database.table_in_any_state(name).definition, label)


def check_policy(text: str, *, is_of_stream: bool = False) -> None:
    """Refuse a text that is not a resource policy for a table, or for a stream.

    The size is checked first, because parsing a long text would delay all other requests. Raises
    ``ValidationException``.
    """
    check_size(text)
    try:
        policy = parse_policy(text, "resource", "resource")
    except MissingElement as error:
        raise _invalid(f"Missing required field {error.name}") from None
    except PolicyError as error:
        raise _invalid(str(error)) from None
    check_new(policy, is_of_stream=is_of_stream)


def _invalid(reason: str) -> ValidationException:
    return invalid_value(f"Invalid policy document: {reason}")


def is_of_stream(arn: str) -> bool:
    """Whether an ARN names a stream."""
    return "/stream/" in arn
