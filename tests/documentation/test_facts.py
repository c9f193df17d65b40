"""The documentation names the same options, limits and formats as the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App

from dynactor.api.command_line import app
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.hints import Hint, shape_members
from dynactor.model import limits
from dynactor.storage.data_directory import FORMAT_VERSION
from tests.support.documentation.pages import DOCS, pages
from tests.support.servers.server import PROJECT

KIB, MIB = limits.KIB, limits.MIB
# Options of other programs in the examples.
FOREIGN = {
    "owner",
    "pwprompt",
    "schema",
    "dynamo-endpoint",
    "endpoint-url",
    "env",
    "file",
    "now",
    "profile",
    "publish",
    "read-only",
    "servers",
    "strict",
    "upgrade",
    "user",
    "volume",
    "volumes",
}
# Pages that show other servers' flags, or the project's own tools.
OTHER_TOOLS = {"PERFORMANCE.md", "DYNAMODB_LOCAL.md", "COMPARISON.md", "CHANGELOG.md"}


def longest(operation: str, *path: str) -> int | None:
    """The maximum length of a list or a text in an input."""
    hint = Hint(OPERATIONS[operation].input)
    for name in path:
        shape = hint.elements.type if hint.kind is list else hint.type
        hint = next(member.hint for member in shape_members(shape) if member.name == name)
    return hint.limits.max_length


ROWS = {
    "Item, with attribute names": (limits.ITEM_SIZE_BYTES // KIB,),
    "Partition key value": (1, limits.PARTITION_KEY_BYTES),
    "Sort key value": (1, limits.SORT_KEY_BYTES),
    "Nesting of lists and maps": (limits.NESTING_LEVELS,),
    "Attribute name": (
        limits.ATTRIBUTE_NAME_BYTES,
        longest("CreateTable", "AttributeDefinitions", "AttributeName"),
    ),
    "Request body": (limits.REQUEST_BYTES // MIB,),
    "Page of a Query or Scan": (limits.PAGE_BYTES // MIB,),
    "BatchGetItem": (
        limits.BATCH_GET_KEYS,
        limits.BATCH_GET_RESPONSE_BYTES // MIB,
        limits.BATCH_GET_PARTITION_BYTES // MIB,
    ),
    "BatchWriteItem": (limits.BATCH_WRITE_REQUESTS,),
    "Transaction": (
        longest("TransactWriteItems", "TransactItems"),
        limits.TRANSACTION_BYTES // MIB,
    ),
    "Client token of a transaction": (limits.CLIENT_TOKEN_SECONDS // 60,),
    "Expression": (
        limits.EXPRESSION_BYTES // KIB,
        limits.EXPRESSION_OPERATORS,
        limits.IN_OPERANDS,
    ),
    "Expression attribute names and values": (limits.EXPRESSION_VALUES_BYTES // MIB,),
    "PartiQL batch": (longest("BatchExecuteStatement", "Statements"),),
    "PartiQL SELECT with IN or OR on its key": (
        limits.PARTIQL_READS,
        limits.PARTIQL_READS_PAGE_ITEMS,
    ),
    "Table name": limits.TABLE_NAME_CHARACTERS,
    "Local secondary indexes of a table": (limits.LOCAL_INDEXES,),
    "Global secondary indexes of a table": (
        limits.GLOBAL_INDEXES,
        limits.GLOBAL_INDEX_KEY_ATTRIBUTES,
    ),
    "Projected non-key attributes of a table": (limits.PROJECTED_ATTRIBUTES,),
    "Provisioned throughput of a table": (limits.TABLE_READ_UNITS, limits.TABLE_WRITE_UNITS),
    "Lowering throughput": (limits.THROUGHPUT_DECREASES_PER_DAY,),
    "Switching to on-demand": (limits.ON_DEMAND_SWITCHES, 24),
    "Changing the table class": (limits.TABLE_CLASS_CHANGES, 30),
    "Changing the encryption": (limits.SSE_CHANGES, 24),
    "Shard iterator": (limits.SHARD_ITERATOR_SECONDS // 60,),
    "GetRecords": (limits.GET_RECORDS, limits.GET_RECORDS_BYTES // MIB),
    "Tags": (
        limits.TAGS_PER_RESOURCE,
        longest("TagResource", "Tags", "Key"),
        longest("TagResource", "Tags", "Value"),
    ),
    "Restores at a time": (limits.RESTORES,),
}


def options(command: App) -> Iterator[str]:
    """The options of a command and of the commands in it."""
    if command.default_command is not None:
        for argument in command.assemble_argument_collection():
            yield from (name.removeprefix("--") for name in argument.names)
    for name in command:
        yield name.removeprefix("--")
        if not name.startswith("-"):
            yield from options(command[name])


@cache
def known_options() -> set[str]:
    return set(options(app)) | FOREIGN


@pytest.mark.parametrize("subject", ROWS)
def test_a_documented_limit_equals_that_of_the_code(subject: str):
    page = (DOCS / "LIMITS.md").read_text()
    [text] = re.findall(rf"^\| {re.escape(subject)} \| (.+) \|$", page, re.MULTILINE)
    numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]
    assert tuple(numbers[: len(ROWS[subject])]) == ROWS[subject]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_option_that_is_named_exists(page: Path):
    if page.name in OTHER_TOOLS:
        return
    # The tools of tests/load have options of their own.
    text = re.sub(r"`?(?:make compare|python -m tests\.load)\b[^`\n]*", "", page.read_text())
    named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text))
    assert named - known_options() == set()


def test_the_table_of_formats_ends_with_the_current_format():
    page = (DOCS / "UPGRADING.md").read_text()
    formats = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert formats == list(range(1, FORMAT_VERSION + 1))
