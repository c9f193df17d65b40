"""The command ``dynactor mirror``: its options, output and exit codes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import anyio
import msgspec
from cyclopts import Parameter
from cyclopts.types import PositiveInt

from dynactor.api.clients.client import RequestFailed, RetryingEndpoint
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.tables import mirror_tables, table_copy
from dynactor.api.commands.tables.batch_writer import BatchWriter
from dynactor.api.commands.tables.comparison import (
    Comparison,
    ItemDifference,
    compare,
    compare_again,
)
from dynactor.api.commands.tables.concurrent_calls import concurrent_calls
from dynactor.api.commands.tables.mirror import Mirror, started
from dynactor.api.commands.tables.mirror_state import MirrorState, Segment, StateFile
from dynactor.api.commands.tables.mirror_tables import PreparedTables, Side
from dynactor.api.commands.tables.table_address import (
    open_endpoint,
    profile_environment,
    table_address,
)
from dynactor.api.commands.tables.table_reader import TableReader, canonical
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.writes.expiry import is_expired

DONE: Final = 0
DIFFERENT: Final = 1
TROUBLE: Final = 2

_REPEATED_COMPARISONS: Final = 5
_SHOWN_DIFFERENCES: Final = 1_000
# 16 hexadecimal digits of a checksum are shown.
_HIDDEN_BITS: Final = 192
_UNMARK_SECONDS: Final = 5.0

_encode = msgspec.json.Encoder().encode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MirrorOptions:
    """The tables, and the preparation and the end of the mirror."""

    source: Annotated[str, Parameter(name="--from")]
    """Table to copy: http://HOST:PORT/TABLE, or aws:TABLE for a table at AWS."""

    target: Annotated[str, Parameter(name="--to")]
    """Table to write to, as for --from. Nothing else may write to it."""

    from_region: str | None = None
    """Region of the source. Default: AWS_REGION or AWS_DEFAULT_REGION, else us-east-1."""

    to_region: str | None = None
    """Region of the copy."""

    from_profile: str | None = None
    """Profile in ~/.aws/credentials with the access key for the source. Default: the key in
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""

    to_profile: str | None = None
    """Profile with the access key for the copy."""

    state: Path | None = None
    """File that keeps the progress, so that the same command continues. Default:
    dynactor-mirror-TABLE.json in the current directory."""

    create: Annotated[bool, Parameter(negative=())] = False
    """Create a missing table with the source's keys, indexes, capacity, time to live and tags."""

    enable_stream: Annotated[bool, Parameter(negative=())] = False
    """Enable a stream of new images on the source if it has no stream."""

    replace: Annotated[bool, Parameter(negative=())] = False
    """Start although the table has items: replace those items, and delete those that the source
    does not have."""

    until_caught_up: Annotated[bool, Parameter(negative=())] = False
    """End once the copy has all changes, instead of following later ones."""

    verify: Annotated[bool, Parameter(negative=())] = False
    """Compare both tables once the copy has all changes, list the differences, and end."""

    segments: PositiveInt = 4
    """Number of parallel scan segments."""


def mirror(options: MirrorOptions) -> int:
    """Run the command; returns its exit code."""
    try:
        return anyio.run(run_mirror, options)
    except (TransferFailed, RequestFailed, CannotCall) as error:
        sys.stderr.write(f"dynactor: {error}\n")
    except OSError as error:
        sys.stderr.write(f"dynactor: Cannot write the state: {error}\n")
    return TROUBLE


async def run_mirror(options: MirrorOptions) -> int:
    """Run the command between the endpoints of its options.

    Raises:
        TransferFailed, RequestFailed, CannotCall: the mirror can't start or continue.
    """
    from_environment = profile_environment(options.from_profile)
    to_environment = profile_environment(options.to_profile)
    source = table_address(options.source, options.from_region, from_environment)
    target = table_address(options.target, options.to_region, to_environment)
    # The last part of an ARN is the name of its table.
    name = target.table_name.rpartition("/")[2]
    path = options.state or Path(f"dynactor-mirror-{name}.json")
    file = StateFile(path, str(source), str(target))
    lines = TerminalProgress()
    result = DONE
    async with (
        open_endpoint(source, from_environment) as from_endpoint,
        open_endpoint(target, to_environment) as to_endpoint,
    ):
        if file.load() is None:
            # The first requests don't wait for a server, because the address may be wrong.
            await table_copy.describe(RetryingEndpoint(from_endpoint), source.table_name)
            await table_copy.describe(RetryingEndpoint(to_endpoint), target.table_name)
        run = MirrorRun(
            options,
            Side(RetryingEndpoint(from_endpoint, anyio.sleep, lines.say), source.table_name),
            Side(RetryingEndpoint(to_endpoint, anyio.sleep, lines.say), target.table_name),
            file=file,
            lines=lines,
        )
        with file.locked():
            async with concurrent_calls() as group:
                group.start_soon(_cancel_on_signal, group.cancel_scope)
                result = await run.mirror()
                group.cancel_scope.cancel()
    return result


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


class MirrorRun:
    """One run of the command between two endpoints."""

    def __init__(
        self,
        options: MirrorOptions,
        source: Side,
        target: Side,
        *,
        file: StateFile,
        lines: TerminalProgress,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._options = options
        self._source = source
        self._target = target
        self._file = file
        self._lines = lines
        self._pause = pause

    async def mirror(self) -> int:
        """Run the mirror to its end; returns the exit code. Raises as ``run_mirror``."""
        stored = self._file.load() or self._file.unstarted()
        tables = await mirror_tables.prepare(
            self._source,
            self._target,
            creates=self._options.create,
            enables_stream=self._options.enable_stream,
            say=self._lines.say,
            pause=self._pause,
        )
        await mirror_tables.mark(self._source, self._target, tables, self._lines.say)
        try:
            key_names = [name for name, _, _ in table_copy.key_types(tables.source)]
            reader = TableReader(*self._source, key_names, self._pause)
            copy = TableReader(*self._target, key_names, self._pause)
            state = stored
            if not _fits(stored, tables):
                state = await self._new_state(tables, copy, stored)
                self._file.save(state)
            mirror = Mirror(
                self._source.endpoint,
                reader,
                copy,
                BatchWriter(*self._target, self._pause),
                state=state,
                save=self._file.save,
                progress=_MirrorProgress(self._lines),
                pause=self._pause,
            )
            await mirror.run(until_caught_up=self._options.until_caught_up or self._options.verify)
            self._lines.say(
                f"caught up: {mirror.state.items:,} items copied, {mirror.state.changes:,} changes "
                "applied"
            )
            if not self._options.verify:
                return DONE
            return await self._verify(mirror, reader, copy)
        finally:
            # The tag stays after a kill. Then the next mirror in this direction removes it.
            with anyio.move_on_after(_UNMARK_SECONDS, shield=True):
                await mirror_tables.unmark(self._target, tables.target)

    async def _new_state(
        self, tables: PreparedTables, copy: TableReader, stored: MirrorState
    ) -> MirrorState:
        """The state of a copy that starts now.

        Raises ``TransferFailed`` if the table has items that this mirror has not copied.
        """
        target_id = table_copy.table_id(tables.target)
        if stored.stream_arn:
            changed = "stream" if stored.target_id == target_id else "copy"
            self._lines.say(f"The {changed} is another one than before: the copy starts again")
        is_empty = await copy.is_empty()
        if not is_empty and stored.target_id != target_id and not self._options.replace:
            raise TransferFailed(
                f"The table {self._target.table_name} has items: add --replace to replace them"
            )
        wanted = MirrorState(
            stored.source,
            stored.target,
            tables.stream_arn,
            target_id,
            {},
            [Segment() for _ in range(self._options.segments)],
        )
        return await started(self._source.endpoint, wanted, clears=not is_empty)

    async def _verify(self, mirror: Mirror, reader: TableReader, copy: TableReader) -> int:
        """Compare the tables; differences from changes in flight are compared again later."""

        def update(result: Comparison) -> None:
            self._lines.show(f"{result.source_items:,} and {result.copy_items:,} items compared")

        result = await compare(reader, copy, self._options.segments, update)
        # Reads of both tables are not at one time, so a key may be listed for both tables.
        left = list({_encode(each.key): each for each in result.differences}.values())
        rounds = 0
        while left and rounds < _REPEATED_COMPARISONS:
            rounds += 1
            await mirror.catch_up()
            left = await compare_again(reader, copy, [each.key for each in left])
        left, expired = await self._unexpired(reader, left)
        for difference in left[:_SHOWN_DIFFERENCES]:
            sys.stdout.write(f"{difference.kind}  {_encode(difference.key).decode()}\n")
        sys.stdout.flush()
        self._lines.say(
            f"{result.source_items:,} items in the source, {result.copy_items:,} in the copy; "
            f"checksums {result.source_sum >> _HIDDEN_BITS:016x} and "
            f"{result.copy_sum >> _HIDDEN_BITS:016x}"
        )
        if rounds:
            self._lines.say(
                f"{len(result.differences):,} differences at first, {len(left):,} after {rounds} "
                "repeated comparisons"
            )
        if expired:
            self._lines.say(f"{expired:,} expired items are only in the source")
        self._lines.say(f"{len(left):,} differences" if left else "equal")
        return DIFFERENT if left else DONE

    async def _unexpired(
        self, reader: TableReader, differences: list[ItemDifference]
    ) -> tuple[list[ItemDifference], int]:
        """The differences without expired items, which the copy deletes, and their number."""
        missing = [each for each in differences if each.kind == "missing"]
        attribute = await table_copy.time_to_live_attribute(*self._target) if missing else None
        if attribute is None:
            return differences, 0
        items = await reader.items([each.key for each in missing])
        now = time.time()
        expired = {
            key for key, item in items.items() if is_expired(item.get(attribute, {}).get("N"), now)
        }
        left = [each for each in differences if canonical(each.key) not in expired]
        return left, len(expired)


def _fits(stored: MirrorState, tables: PreparedTables) -> bool:
    """Whether a stored state belongs to these tables and this stream."""
    return (stored.stream_arn, stored.target_id) == (
        tables.stream_arn,
        table_copy.table_id(tables.target),
    )


class _MirrorProgress:
    """Shows a mirror's counts as one line."""

    def __init__(self, lines: TerminalProgress) -> None:
        self._lines = lines
        self.say = lines.say

    def update(self, state: MirrorState, last_change_epoch_seconds: float | None) -> None:
        """Show the counts."""
        text = f"{state.items:,} items copied, {state.changes:,} changes applied"
        if last_change_epoch_seconds is not None:
            # The source's clock may be ahead.
            age_seconds = max(time.time() - last_change_epoch_seconds, 0.0)
            text += f", the last one made {age_seconds:,.0f} s ago"
        self._lines.show(text)
