"""The actions that several operations ask for in the same way.

Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon
DynamoDB"; Developer Guide, "Using IAM with DynamoDB backup and restore".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dynactor.api.access.ask import Ask, Asking, AskRule
from dynactor.api.access.facts import ActionFacts, TagFacts
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException

_ARN: Final = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:(table/([^/|]+)[^|]*)")
# A restore writes the new table, and AWS asks for all of these actions.
_RESTORING: Final = (
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "GetItem",
    "Query",
    "Scan",
    "BatchWriteItem",
)


def on_table(asking: Asking, given_name: str) -> Ask:
    """The operation's action on a table."""
    name = table_name(given_name)
    facts = ActionFacts(asking.facts, asking.table_in_any_state(name))
    return Ask(asking.action, asking.table_arn(name), facts)


def table(asking: Asking) -> Iterator[Ask]:
    """Operations on the table of ``TableName``."""
    yield on_table(asking, asking.request.TableName)


def table_or_index(asking: Asking) -> Iterator[Ask]:
    """Operations on a table, or on one of its indexes."""
    ask = on_table(asking, asking.request.TableName)
    index = asking.request.IndexName
    yield ask if index is None else ask._replace(resource=f"{ask.resource}/index/{index}")


def restored_table(asking: Asking) -> Iterator[Ask]:
    """The new table of a restore."""
    target = on_table(asking, asking.request.TargetTableName)
    yield target
    for name in _RESTORING:
        yield target._replace(action=f"dynamodb:{name}")


def tagged_resource(asking: Asking) -> Iterator[Ask]:
    """TagResource and UntagResource."""
    for ask in member("ResourceArn")(asking):
        keys = getattr(asking.request, "TagKeys", None) or ()
        facts = TagFacts(asking.facts, ask.facts.table, tags(asking.request), keys)
        yield ask._replace(facts=facts)


def tags(request: object) -> Mapping[str, str]:
    """The tags in a request."""
    return {tag.Key: tag.Value for tag in getattr(request, "Tags", None) or ()}


def member(name: str) -> AskRule:
    """The rule of operations on the resource whose ARN a member has.

    The resource has the account and the region of the database. The region in the request is
    ignored, or its operation refuses another region.
    """

    def rule(asking: Asking) -> Iterator[Ask]:
        given: str = getattr(asking.request, name)
        found = _ARN.match(given)
        if found is not None:
            facts = ActionFacts(asking.facts, asking.table_in_any_state(found[2]))
            yield Ask(asking.action, asking.arn(found[1]), facts)
            return
        try:
            # A table's name instead of an ARN.
            yield on_table(asking, given)
        except ValidationException:
            yield Ask(asking.action, given, ActionFacts(asking.facts))

    return rule


def no_resource(asking: Asking) -> Iterator[Ask]:
    """Operations without a resource."""
    yield Ask(asking.action, "*", ActionFacts(asking.facts))


def global_table(asking: Asking) -> Iterator[Ask]:
    """Operations on the global table of ``GlobalTableName``."""
    settings = asking.database.settings
    name = asking.request.GlobalTableName
    arn = f"arn:aws:dynamodb::{settings.account_id}:global-table/{name}"
    yield Ask(asking.action, arn, ActionFacts(asking.facts))
