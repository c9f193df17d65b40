"""The condition keys of a request and of its actions. Each is derived when a policy asks for it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from dynactor.actors.table.table import Table
from dynactor.api.access.sender import Sender
from dynactor.api.keys.credential_scope import credential_scope
from dynactor.model.access.principal import Principal, tag_values
from dynactor.model.access.rules import UnknownFact
from dynactor.model.errors import DynamoDBError
from dynactor.model.keys.key import KeySchema

# The keys of values of partition key attributes, each with the position of the attribute.
_KEY_VALUES: Final = {
    "dynamodb:leadingkeys": 0,
    "dynamodb:firstpartitionkeyvalues": 0,
    "dynamodb:secondpartitionkeyvalues": 1,
    "dynamodb:thirdpartitionkeyvalues": 2,
    "dynamodb:fourthpartitionkeyvalues": 3,
}
_PREFIX: Final = "dynamodb:"
# Marks in place of values, compared by identity.
_NOT_DERIVED: Final[Sequence[str]] = ["not derived"]
_UNKNOWN: Final[Sequence[str]] = ["unknown"]


class RequestFacts(Struct, frozen=True):
    """The condition keys that are the same for all actions of a request."""

    principal: Principal
    sender: Sender

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a key in lower case; None if the request has no such key."""
        match key:
            case "aws:currenttime":
                return (datetime.fromtimestamp(time.time(), UTC).isoformat(),)
            case "aws:epochtime":
                return (str(int(time.time())),)
            case "aws:requestedregion":
                return (credential_scope(self.sender.authorization, self.sender.query)[0],)
            case "aws:securetransport":
                return ("true" if self.sender.client.is_secure else "false",)
            case "aws:sourceip":
                address = self.sender.client.address
                return (address,) if address else None
            case "aws:useragent":
                agent = self.sender.headers.get("user-agent")
                return None if agent is None else (agent,)
        return self.principal.values(key)


class ActionFacts:
    """The condition keys of one action, which are those of its request and more.

    A subclass derives the values of keys, attributes and so on. Values are kept, because several
    statements may ask for them.
    """

    __slots__ = ("_kept", "request", "table")

    def __init__(self, request: RequestFacts, table: Table | None = None) -> None:
        self.request = request
        self.table = table
        self._kept: dict[str, Sequence[str] | None] = {}

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a key in lower case; None without such a key. Raises ``UnknownFact``."""
        found = self._kept.get(key, _NOT_DERIVED)
        if found is _NOT_DERIVED:
            found = self._kept[key] = self._attempt(key)
        if found is _UNKNOWN:
            raise UnknownFact
        return found

    def _attempt(self, key: str) -> Sequence[str] | None:
        try:
            return self._derived(key)
        except (UnknownFact, DynamoDBError, ValueError):
            # If the request is faulty, its operation finds the same fault and refuses the request.
            return _UNKNOWN

    def _derived(self, key: str) -> Sequence[str] | None:
        position = _KEY_VALUES.get(key)
        if position is not None:
            return self.partition_key_values(position)
        if key.startswith(_PREFIX):
            return self.service_values(key.removeprefix(_PREFIX))
        if key.startswith("aws:resourcetag/"):
            tags = {} if self.table is None else dict(self.table.definition.tags)
            return tag_values(tags, key.partition("/")[2])
        if key == "aws:tagkeys":
            return self.tag_keys()
        if key.startswith("aws:requesttag/"):
            return tag_values(self.tags(), key.partition("/")[2])
        return self.request.values(key)

    def partition_key_values(self, position: int) -> Sequence[str] | None:  # noqa: ARG002 - subclasses use it
        """The values of the partition key's attribute at a position, in the action's items."""
        return None

    def service_values(self, name: str) -> Sequence[str] | None:  # noqa: ARG002 - subclasses use it
        """The values of another key of DynamoDB, by its name without prefix."""
        return None

    def tags(self) -> Mapping[str, str]:
        """The tags that the request sets."""
        return {}

    def tag_keys(self) -> Sequence[str] | None:
        """The keys of tags in the request."""
        return tuple(self.tags()) or None


class TagFacts(ActionFacts):
    """The condition keys of an action that sets or removes tags."""

    __slots__ = ("_keys", "_tags")

    def __init__(
        self,
        request: RequestFacts,
        table: Table | None,
        tags: Mapping[str, str],
        keys: Iterable[str] = (),
    ) -> None:
        super().__init__(request, table)
        self._tags = tags
        self._keys = (*tags, *keys)

    def tags(self) -> Mapping[str, str]:
        """The tags that the request sets."""
        return self._tags

    def tag_keys(self) -> Sequence[str] | None:
        """The keys of tags in the request."""
        return self._keys or None


class DataFacts(ActionFacts):
    """The condition keys of an action that reads or writes items.

    ``own`` has keys of DynamoDB that are given by the kind of request, by their names.
    """

    __slots__ = ("own",)

    def __init__(
        self, request: RequestFacts, table: Table | None, own: Mapping[str, Sequence[str] | None]
    ) -> None:
        super().__init__(request, table)
        self.own = own

    def service_values(self, name: str) -> Sequence[str] | None:
        """The values of another key of DynamoDB, by its name without prefix."""
        if name == "attributes":
            return tuple(self.attributes()) or None
        return self.own.get(name)

    def attributes(self) -> Collection[str]:
        """The names of all attributes in the request."""
        return ()

    def schema(self) -> KeySchema:
        """The key of the table; raises ``UnknownFact``."""
        if self.table is None:
            raise UnknownFact
        return self.table.definition.key_schema

    def schema_of_index(self, index_name: str | None) -> KeySchema:
        """The key of the table or of one of its indexes; raises ``UnknownFact``."""
        schema = self.schema()
        if index_name is None:
            return schema
        assert self.table is not None, "see schema"
        for index in self.table.definition.indexes:
            if index.name == index_name:
                return index.key_schema
        raise UnknownFact
