"""The command ``dynactor violations``: its options, output and exit codes."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal, Protocol, TypeAlias, cast

import anyio
import msgspec
from cyclopts import Parameter
from cyclopts.types import PositiveInt
from cyclopts.validators import Number
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from dynactor.api.clients.client import Endpoint, RequestFailed, RetryingEndpoint, open_client
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands import violation_detector
from dynactor.api.commands.violation_corrections import BadCorrection, Corrections, read_corrections
from dynactor.api.commands.violation_detector import (
    Allowance,
    Convert,
    DeleteAttribute,
    Fix,
    ItemViolation,
    Rewrite,
    Target,
)
from dynactor.model.errors import DynamoDBError
from dynactor.model.keys.key import KeyAttribute, KeySchema, KeyType
from dynactor.model.limits import ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue

NONE_LEFT: Final = 0
SOME_LEFT: Final = 1
TROUBLE: Final = 2

Format: TypeAlias = Literal["csv", "json"]

_encode = msgspec.json.Encoder().encode


class _Trouble(Exception):
    """The command can't run with these options; the message describes the fix."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ViolationsOptions:
    """The table and index, the fix, and the output."""

    table: str
    """Table to search."""

    index: str | None = None
    """Global secondary index of the table."""

    partition_key: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Partition key of a planned index, as NAME:TYPE (S, N or B), instead of --index."""

    sort_key: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Sort key of a planned index, as NAME:TYPE."""

    endpoint: str = "http://127.0.0.1:8000"
    """Address of the server."""

    region: str | None = None
    """Region of the table, if the server has separate tables for each region. Default: AWS_REGION
    or AWS_DEFAULT_REGION, else us-east-1."""

    format: Format = "csv"
    """Format of the report: comma-separated values with a header line, or one JSON object per
    line."""

    output: Path | None = None
    """File to write to, instead of standard output."""

    fix: Literal["delete", "rewrite", "convert"] | None = None
    """Correction of each violation whose value has not changed meanwhile.

    delete removes the attribute but never the item, rewrite sets --value, convert turns strings
    into numbers or numbers into strings, as the index requires.
    """

    value: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """New value of an attribute for --fix rewrite, as NAME=TEXT; base64 for a binary."""

    corrections: Path | None = None
    """Report of this command with corrections to apply; the command then searches nothing.

    The column correction has the new value, base64 for a binary. Y in the column delete removes
    the attribute. A line is skipped if its value in the table has changed since the report.
    """

    segments: PositiveInt = 4
    """Number of parallel scan segments."""

    max_violations: PositiveInt | None = None
    """Stop after this number of violations."""

    max_items: PositiveInt | None = None
    """Stop after reading this number of items."""

    units_percent: Annotated[float | None, Parameter(validator=Number(gt=0, lte=100))] = None
    """Use at most this percentage of the table's units, for example 25. Default: no limit."""


def violations(options: ViolationsOptions) -> int:
    """Run the command; returns its exit code."""
    try:
        return anyio.run(_run, options)
    except BrokenPipeError:
        # The reader has closed the pipe. Replace it, because Python would flush the output at its
        # exit and report the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        file = options.output or "to standard output"
        sys.stderr.write(f"dynactor: Cannot write {file}: {error.strerror}\n")
    except (_Trouble, CannotCall, RequestFailed) as error:
        sys.stderr.write(f"dynactor: {error}\n")
    return TROUBLE


async def _run(options: ViolationsOptions) -> int:
    async with open_client(options.endpoint, options.region) as single:
        client = RetryingEndpoint(single)
        target = await _target(client, options)
        corrections = _corrections(options, target)
        fix = corrections or _fix(options, target.index_key)
        with _report(options) as report, _progress(options, target.item_count) as scanned:
            run = _ViolationRun(
                client, target, fix, report=report, scanned=scanned, options=options
            )
            if corrections is not None:
                await run.all_corrections(corrections)
            else:
                # With a limit read one segment only: parallel segments could each leave a part of
                # the limit unused.
                await run.all_segments(1 if options.max_items else options.segments)
    sys.stderr.write(run.summary())
    return SOME_LEFT if run.found > run.corrected else NONE_LEFT


# -- options --------------------------------------------------------------------------------


async def _target(client: Endpoint, options: ViolationsOptions) -> Target:
    """The table's definition, and the key of the index."""
    if (options.index is None) == (not options.partition_key):
        raise _Trouble("Give either --index or --partition-key NAME:TYPE")
    if options.index is not None and options.sort_key:
        raise _Trouble("--sort-key needs --partition-key: an --index already has its sort key")
    description = (await client.call("DescribeTable", {"TableName": options.table}))["Table"]
    types: dict[str, KeyType] = {
        attribute["AttributeName"]: attribute["AttributeType"]
        for attribute in description["AttributeDefinitions"]
    }
    if options.index is None:
        schema = KeySchema(
            tuple(_attribute(text, types) for text in options.partition_key),
            tuple(_attribute(text, types) for text in options.sort_key),
        )
    else:
        schema = _index_key(description, options.index, types)
    return Target(
        options.table,
        tuple(element["AttributeName"] for element in description["KeySchema"]),
        schema,
        description["ItemCount"],
        description["ProvisionedThroughput"]["ReadCapacityUnits"] or ON_DEMAND_READ_UNITS,
        description["ProvisionedThroughput"]["WriteCapacityUnits"] or ON_DEMAND_WRITE_UNITS,
    )


def _corrections(options: ViolationsOptions, target: Target) -> Corrections | None:
    if options.corrections is None:
        return None
    if options.fix is not None:
        raise _Trouble("Give either --fix or --corrections")
    if options.output is not None and options.output.resolve() == options.corrections.resolve():
        raise _Trouble("--output would overwrite the file of --corrections")
    try:
        return read_corrections(options.corrections, options.format, target)
    except BadCorrection as error:
        raise _Trouble(str(error)) from None
    except OSError as error:
        raise _Trouble(f"Cannot read {options.corrections}: {error.strerror}") from None


def _attribute(text: str, types: dict[str, KeyType]) -> KeyAttribute:
    name, _, type_name = text.rpartition(":")
    if not name or type_name not in ("S", "N", "B"):
        raise _Trouble(f"{text!r} is not NAME:TYPE: the type of a key is S, N or B")
    if types.get(name, type_name) != type_name:
        raise _Trouble(
            f"The table defines {name} as {types[name]}: in an index it can't be {type_name}"
        )
    return KeyAttribute(name, cast("KeyType", type_name))


def _index_key(description: dict[str, Any], name: str, types: dict[str, KeyType]) -> KeySchema:
    indexes = {
        index["IndexName"]: index["KeySchema"]
        for index in description.get("GlobalSecondaryIndexes", ())
    }
    if name not in indexes:
        existing = f"it has {', '.join(sorted(indexes))}" if indexes else "it has none"
        raise _Trouble(
            f"The table has no global secondary index {name}: {existing}. "
            "For a planned index give --partition-key"
        )

    def part(role: str) -> tuple[KeyAttribute, ...]:
        return tuple(
            KeyAttribute(element["AttributeName"], types[element["AttributeName"]])
            for element in indexes[name]
            if element["KeyType"] == role
        )

    return KeySchema(part("HASH"), part("RANGE"))


def _fix(options: ViolationsOptions, schema: KeySchema) -> Fix | None:
    if options.value and options.fix != "rewrite":
        raise _Trouble("--value needs --fix rewrite")
    match options.fix:
        case None:
            return None
        case "delete":
            return DeleteAttribute()
        case "convert":
            return Convert()
        case "rewrite":
            if not options.value:
                raise _Trouble("--fix rewrite needs a --value NAME=TEXT")
            return Rewrite(dict(_new_value(text, schema) for text in options.value))


def _new_value(text: str, schema: KeySchema) -> tuple[str, AttributeValue]:
    """An attribute's name and its new value, which must be a valid key."""
    name, equals, content = text.partition("=")
    attribute = next((one for one in schema.attributes if one.name == name), None)
    if not equals or attribute is None:
        names = ", ".join(one.name for one in schema.attributes)
        raise _Trouble(f"--value {text!r} is not NAME=TEXT with a NAME of the index's key: {names}")
    value: AttributeValue = {attribute.type: content}
    try:
        attribute_value.check(value)
    except DynamoDBError as error:
        raise _Trouble(
            f"--value {text!r} is not a value of type {attribute.type}: {error}"
        ) from None
    if not violation_detector.is_possible(schema, attribute, value):
        raise _Trouble(f"--value {text!r} would be a violation itself")
    return name, value


# -- the pass over a table ------------------------------------------------------------------


class _ViolationReport(Protocol):
    def write(self, violation: ItemViolation) -> None: ...


class _Scanned(Protocol):
    def __call__(self, items: int) -> None: ...


class _ViolationRun:
    """One pass over a table, with its counts so far."""

    def __init__(
        self,
        client: Endpoint,
        target: Target,
        fix: Fix | None,
        *,
        report: _ViolationReport,
        scanned: _Scanned,
        options: ViolationsOptions,
    ) -> None:
        self._client = client
        self._target = target
        self._fix = fix
        self._report = report
        self._scanned = scanned
        self._allowance = Allowance(options.max_items)
        self._max_violations = options.max_violations
        self._reading = _rate(target.read_units, options)
        self._writing = _rate(target.write_units, options)
        self.items = 0
        self.found = 0
        self.corrected = 0

    async def all_segments(self, segments: int) -> None:
        """Read the whole table, its segments in parallel; raises the error that ended the pass."""
        failures: tuple[BaseException, ...] = ()
        try:
            async with anyio.create_task_group() as group:
                for segment in range(segments):
                    group.start_soon(self._one_segment, segment, segments)
        except* (RequestFailed, CannotCall, OSError) as errors:
            failures = errors.exceptions
        if failures:
            raise failures[0]

    async def _one_segment(self, segment: int, segments: int) -> None:
        pages = violation_detector.pages(
            self._client,
            self._target,
            segment,
            segments,
            allowance=self._allowance,
            rate=self._reading,
        )
        async for page in pages:
            self.items += page.items
            self._scanned(page.items)
            for violations in page.violations:
                if self._has_enough:
                    return
                await self._report_item(violations)

    async def all_corrections(self, corrections: Corrections) -> None:
        """Apply the corrections of a file, item by item; raises the error that ended the pass."""
        for violations in corrections.violations:
            if self._has_enough:
                return
            self.items += 1
            await self._report_item(violations)

    @property
    def _has_enough(self) -> bool:
        return self._max_violations is not None and self.found >= self._max_violations

    async def _report_item(self, violations: list[ItemViolation]) -> None:
        if self._fix is not None:
            violations = await violation_detector.correct(
                self._client, self._target, violations, self._fix, self._writing
            )
        for violation in violations:
            self.found += 1
            self.corrected += violation.corrected
            self._report.write(violation)

    def summary(self) -> str:
        """The counts as one line."""
        corrected = "" if self._fix is None else f", {self.corrected:,} of them corrected"
        stopped = ""
        if self._has_enough:
            stopped = "; stopped at --max-violations"
        elif self._allowance.is_spent:
            stopped = "; stopped at --max-items"
        return f"{self.found:,} violations in {self.items:,} items{corrected}{stopped}\n"


def _rate(units_per_second: int, options: ViolationsOptions) -> SteadyRate | None:
    """The maximum rate of units; None: no limit."""
    if options.units_percent is None:
        return None
    return SteadyRate(units_per_second * options.units_percent / 100)


# -- output ---------------------------------------------------------------------------------


def _columns(violation: ItemViolation) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "key": violation.key,
        "attribute": violation.attribute.name,
        "expected_type": violation.attribute.type,
        "found_type": attribute_value.data_type(violation.value),
        "reason": violation.reason,
        "value": violation.value,
    }
    if violation.outcome:
        return columns | {"outcome": violation.outcome}
    # The user fills these columns in for --corrections.
    return columns | {"correction": "", "delete": ""}


class _ViolationCsv:
    """Writes comma-separated values; keys and values are in DynamoDB's JSON."""

    def __init__(self, file: IO[str], *, with_outcome: bool) -> None:
        names = ["key", "attribute", "expected_type", "found_type", "reason", "value"]
        names += ["outcome"] if with_outcome else ["correction", "delete"]
        # csv writes the line ends of Windows by default.
        self._writer = csv.DictWriter(file, names, lineterminator="\n")
        self._writer.writeheader()

    def write(self, violation: ItemViolation) -> None:
        columns = _columns(violation)
        texts = {name: _encode(columns[name]).decode() for name in ("key", "value")}
        self._writer.writerow(columns | texts)


class _ViolationLines:
    """Writes one JSON object per line."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, violation: ItemViolation) -> None:
        self._file.write(_encode(_columns(violation)).decode() + "\n")


@contextmanager
def _report(options: ViolationsOptions) -> Iterator[_ViolationReport]:
    with _file(options.output) as file:
        if options.format == "json":
            yield _ViolationLines(file)
        else:
            yield _ViolationCsv(file, with_outcome=bool(options.fix or options.corrections))
        file.flush()


def _file(output: Path | None) -> AbstractContextManager[IO[str]]:
    return (
        nullcontext(sys.stdout)
        if output is None
        else output.open("w", encoding="utf-8", newline="")
    )


@contextmanager
def _progress(options: ViolationsOptions, item_count: int) -> Iterator[_Scanned]:
    """A progress bar on a terminal without other output."""
    console = Console(stderr=True)
    is_shown = console.is_terminal and (options.output is not None or not sys.stdout.isatty())
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as progress:
        task = progress.add_task("items", total=item_count)
        yield lambda items: progress.advance(task, items)
