"""The options of a run, and the plan that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Final

from cyclopts import Group, Parameter
from cyclopts.types import NonNegativeFloat, PositiveFloat, PositiveInt
from cyclopts.validators import Number

from dynactor.load.run.fill import ITEMS_TO_A_REQUEST
from dynactor.load.run.table import Preparation
from dynactor.load.wire.endpoint import NotAnEndpoint, parse_endpoint
from dynactor.load.work.keys import UnknownChoice, key_choice
from dynactor.load.work.plan import Plan
from dynactor.load.work.sizes import UnknownSizes, sizes
from dynactor.load.work.workloads import WORKLOADS, UnknownMix, parse_mix

_WORK: Final = Group("Workload", sort_key=1)
_PACE: Final = Group("Rate and duration", sort_key=2)
_ITEMS: Final = Group("Items and table", sort_key=3)
_RESULT: Final = Group("Checks and result", sort_key=4)

_WRITING: Final = frozenset({"put", "conditional-put", "update", "delete", "read-modify-write"})


class WrongOption(Exception):
    """Invalid options, or an invalid combination; the message says how to fix it."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The endpoint and the work to do."""

    endpoint: str = "http://127.0.0.1:8000"
    """Any DynamoDB endpoint, such as https://dynamodb.eu-central-1.amazonaws.com."""

    workload: Annotated[str, Parameter(group=_WORK)] = "ycsb-a"
    """A named workload: ycsb-a to ycsb-f, or one operation. See `dynactor load workloads`."""

    mix: Annotated[str | None, Parameter(group=_WORK)] = None
    """Operations and their shares, instead of a named workload. Example: get=90,put=10."""

    key_choice: Annotated[str | None, Parameter(group=_WORK)] = None
    """Distribution of keys: uniform, zipfian[:THETA], latest[:THETA],
    hot-set[:SHARE OF KEYS:SHARE OF REQUESTS] or sequential. Default: the workload's own, mostly
    uniform; zipfian for YCSB."""

    query_items: Annotated[PositiveInt | None, Parameter(group=_WORK)] = None
    """Items per query; the maximum for a range. Default: 10; 100 for ycsb-e."""

    batch_items: Annotated[
        int, Parameter(group=_WORK, validator=Number(gte=1, lte=ITEMS_TO_A_REQUEST))
    ] = ITEMS_TO_A_REQUEST
    """Items per batch, 1 to 25."""

    transaction_items: Annotated[int, Parameter(group=_WORK, validator=Number(gte=1, lte=100))] = 4
    """Items per transaction, 1 to 100."""

    consistent: Annotated[bool, Parameter(group=_WORK, negative="--eventually")] = True
    """Use strongly consistent or eventually consistent reads."""

    rate: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 0.0
    """Requests per second in an open loop; latency counts from each request's scheduled time.
    0: a closed loop, in which each connection sends its next request after an answer."""

    connections: Annotated[PositiveInt, Parameter(group=_PACE)] = 64
    """Connections of all workers together."""

    workers: Annotated[PositiveInt, Parameter(group=_PACE)] = 1
    """Worker processes."""

    ramp: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 0.0
    """Seconds until the rate, or the number of busy connections, reaches its final value."""

    warm_up: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 2.0
    """Seconds after the ramp that are not measured."""

    duration: Annotated[PositiveFloat, Parameter(group=_PACE)] = 10.0
    """Seconds to measure."""

    timeout: Annotated[PositiveFloat, Parameter(group=_PACE)] = 30.0
    """Seconds until a missing answer counts as an error."""

    seed: Annotated[int, Parameter(group=_PACE)] = 1
    """Seed of the random operations, keys and sizes."""

    keys: Annotated[PositiveInt, Parameter(group=_ITEMS)] = 10_000
    """Items that exist before the run, rounded up to whole item collections."""

    item_size: Annotated[str, Parameter(group=_ITEMS)] = "300"
    """Bytes per item with names and keys: BYTES, FROM-TO, exponential:MEAN or
    lognormal:MEDIAN:SIGMA. Example: 100-2000."""

    fields: Annotated[int, Parameter(group=_ITEMS, validator=Number(gte=1, lte=100))] = 5
    """Payload attributes per item, 1 to 100. Each item has five other attributes."""

    collection_items: Annotated[PositiveInt | None, Parameter(group=_ITEMS)] = None
    """Items per partition key. Default: 10, or the number per query."""

    table: Annotated[str, Parameter(group=_ITEMS)] = "load"
    """Name of the table."""

    prepare: Annotated[Preparation, Parameter(group=_ITEMS)] = "auto"
    """auto uses an existing table unchanged, or creates and fills a new one; reuse requires an
    existing table; recreate deletes it first."""

    drop: Annotated[bool, Parameter(group=_ITEMS, negative=())] = False
    """Delete the table after the run."""

    local_index: Annotated[bool | None, Parameter(group=_ITEMS)] = None
    """Give the table a local index. Default: if the workload queries it."""

    global_index: Annotated[bool | None, Parameter(group=_ITEMS)] = None
    """Give the table a global index. Default: if the workload queries it."""

    sign: Annotated[bool | None, Parameter(group=_RESULT)] = None
    """Sign requests with the credentials that boto3 would find. Default: only for AWS."""

    region: Annotated[str | None, Parameter(group=_RESULT)] = None
    """Region of the signature. Default: the region in the endpoint's name."""

    verify: Annotated[bool, Parameter(group=_RESULT, negative=())] = False
    """Compare every read with the writes, and read all items back at the end. The exit code is 1
    if a write is lost or a read is stale or foreign."""

    index_deadline: Annotated[NonNegativeFloat, Parameter(group=_RESULT)] = 30.0
    """With --verify: seconds for a global index to catch up after the run."""

    server_pid: Annotated[PositiveInt | None, Parameter(group=_RESULT)] = None
    """Process id of the server on this machine, to measure its processor time."""

    output: Annotated[Path | None, Parameter(group=_RESULT)] = None
    """File for the result, as JSON."""

    label: Annotated[str | None, Parameter(group=_RESULT)] = None
    """Name of the result in comparisons. Default: the output's name, or the endpoint."""

    quiet: Annotated[bool, Parameter(group=_RESULT, negative=())] = False
    """Show only the result."""

    @property
    def workload_name(self) -> str:
        """The workload's name in the result."""
        return self.mix or self.workload

    @property
    def result_label(self) -> str:
        """The label, or its default."""
        return self.label or (self.output.stem if self.output else self.endpoint)

    def plan(self) -> Plan:
        """The plan for the workers.

        Raises:
            WrongOption: the options are invalid.
        """
        try:
            return self._plan()
        except (NotAnEndpoint, UnknownChoice, UnknownMix, UnknownSizes) as error:
            raise WrongOption(str(error)) from error

    def _plan(self) -> Plan:
        if self.workload not in WORKLOADS:
            raise WrongOption(
                f"{self.workload!r} is not a workload; choose one of {', '.join(WORKLOADS)}"
            )
        workload = WORKLOADS[self.workload]
        mix = dict(workload.mix) if self.mix is None else parse_mix(self.mix)
        choice = self.key_choice or ("uniform" if self.mix else workload.key_choice)
        key_choice(choice, Random(self.seed))
        sizes(self.item_size)
        endpoint = parse_endpoint(self.endpoint)
        query_items = self.query_items or (None if self.mix else workload.query_items) or 10
        collection_items = self.collection_items or max(10, query_items)
        if self.workers > self.connections:
            raise WrongOption(
                f"{self.workers} workers need at least as many connections: give --connections "
                f"{self.workers} or more"
            )
        unit = collection_items * self.workers
        keys = math.ceil(self.keys / unit) * unit
        self._check_keys(keys, mix)
        return Plan(
            endpoint=self.endpoint,
            table=self.table,
            mix=mix,
            key_choice=choice,
            keys=keys,
            item_size=self.item_size,
            fields=self.fields,
            collection_items=collection_items,
            query_items=query_items,
            batch_items=self.batch_items,
            transaction_items=self.transaction_items,
            consistent=self.consistent,
            connections=self.connections,
            workers=self.workers,
            rate=self.rate,
            ramp_seconds=self.ramp,
            warm_up_seconds=self.warm_up,
            seconds=self.duration,
            timeout_seconds=self.timeout,
            seed=self.seed,
            verify=self.verify,
            index_deadline_seconds=self.index_deadline,
            sign=bool(endpoint.aws_region) if self.sign is None else self.sign,
            region=self.region or endpoint.aws_region or "local",
            local_index="lsi-query" in mix if self.local_index is None else self.local_index,
            global_index="gsi-query" in mix if self.global_index is None else self.global_index,
        )

    def _check_keys(self, keys: int, mix: dict[str, float]) -> None:
        """Check that there are enough items for the requests of all connections."""
        of_request = {
            name: self.batch_items if name.startswith("batch-") else self.transaction_items
            for name in mix
            if name.startswith(("batch-", "transact-"))
        }
        at_once = max(of_request.values(), default=1)
        if self.verify and mix.keys() & (_WRITING | {"batch-write", "transact-write"}):
            # Each item has one writer at a time.
            at_once *= 2 * self.connections
        if keys < at_once:
            raise WrongOption(f"{keys:,} keys are too few for these requests: --keys {at_once}")
