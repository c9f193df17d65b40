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

_WORK: Final = Group("What is asked", sort_key=1)
_PACE: Final = Group("How fast, how long", sort_key=2)
_ITEMS: Final = Group("Items and table", sort_key=3)
_RESULT: Final = Group("Check and result", sort_key=4)

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
    """A named workload: ycsb-a to ycsb-f, or the name of one operation. See `workloads`."""

    mix: Annotated[str | None, Parameter(group=_WORK)] = None
    """Operations and their shares instead, such as get=90,put=10."""

    key_choice: Annotated[str | None, Parameter(group=_WORK)] = None
    """uniform, zipfian[:THETA], latest[:THETA], hot-set[:SHARE OF KEYS:SHARE OF REQUESTS] or
    sequential. Default: the workload's own, mostly uniform; zipfian with YCSB's."""

    query_items: Annotated[PositiveInt | None, Parameter(group=_WORK)] = None
    """Items that a query asks for; of a range the most. Default: 10, with ycsb-e 100."""

    batch_items: Annotated[
        int, Parameter(group=_WORK, validator=Number(gte=1, lte=ITEMS_TO_A_REQUEST))
    ] = ITEMS_TO_A_REQUEST
    """Items of a batch."""

    transaction_items: Annotated[int, Parameter(group=_WORK, validator=Number(gte=1, lte=100))] = 4
    """Items of a transaction."""

    consistent: Annotated[bool, Parameter(group=_WORK, negative="--eventually")] = True
    """Reads are consistent ones, or eventually so."""

    rate: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 0.0
    """An open loop: so many requests a second, whose latency counts from the moment when they
    were due. 0: a closed loop, each connection sends when it has its answer."""

    connections: Annotated[PositiveInt, Parameter(group=_PACE)] = 64
    """Of all workers together."""

    workers: Annotated[PositiveInt, Parameter(group=_PACE)] = 1
    """Processes."""

    ramp: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 0.0
    """Seconds in which the rate, or the number of busy connections, rises to what it will be."""

    warm_up: Annotated[NonNegativeFloat, Parameter(group=_PACE)] = 2.0
    """Seconds after that which don't count yet."""

    duration: Annotated[PositiveFloat, Parameter(group=_PACE)] = 10.0
    """Seconds that count."""

    timeout: Annotated[PositiveFloat, Parameter(group=_PACE)] = 30.0
    """Seconds after which an answer is given up, and counted as an error."""

    seed: Annotated[int, Parameter(group=_PACE)] = 1
    """The same seed draws the same operations, keys and sizes."""

    keys: Annotated[PositiveInt, Parameter(group=_ITEMS)] = 10_000
    """Items that are there before the run; rounded up to whole item collections."""

    item_size: Annotated[str, Parameter(group=_ITEMS)] = "300"
    """BYTES, FROM-TO, exponential:MEAN or lognormal:MEDIAN:SIGMA; names and keys included."""

    fields: Annotated[int, Parameter(group=_ITEMS, validator=Number(gte=1, lte=100))] = 5
    """Attributes that fill an item up, beside five others."""

    collection_items: Annotated[PositiveInt | None, Parameter(group=_ITEMS)] = None
    """Items under one partition key. Default: 10, or as many as a query asks for."""

    table: Annotated[str, Parameter(group=_ITEMS)] = "load"
    """Its name."""

    prepare: Annotated[Preparation, Parameter(group=_ITEMS)] = "auto"
    """auto: a table that is there is taken as it is, else it is made and filled. reuse: it has to
    be there. recreate: it is deleted first."""

    drop: Annotated[bool, Parameter(group=_ITEMS, negative=())] = False
    """Delete the table after the run."""

    local_index: Annotated[bool | None, Parameter(group=_ITEMS)] = None
    """The table has a local index. Default: if there are queries of it."""

    global_index: Annotated[bool | None, Parameter(group=_ITEMS)] = None
    """The table has a global index. Default: if there are queries of it."""

    sign: Annotated[bool | None, Parameter(group=_RESULT)] = None
    """Sign requests with the credentials that boto3 would find. Default: if the endpoint is AWS."""

    region: Annotated[str | None, Parameter(group=_RESULT)] = None
    """The region that a signature names. Default: that of the endpoint's name."""

    verify: Annotated[bool, Parameter(group=_RESULT, negative=())] = False
    """Check every read against what was written, and read everything back at the end. The exit
    code is 1 if a write is lost or a read is stale or foreign."""

    index_deadline: Annotated[NonNegativeFloat, Parameter(group=_RESULT)] = 30.0
    """With --verify: seconds that a global index has to catch up after the run."""

    server_pid: Annotated[PositiveInt | None, Parameter(group=_RESULT)] = None
    """The server's process, if it is on this machine, to count its processor time."""

    output: Annotated[Path | None, Parameter(group=_RESULT)] = None
    """The file that the result goes to, as JSON."""

    label: Annotated[str | None, Parameter(group=_RESULT)] = None
    """What the result is called in comparisons. Default: the output's name, or the endpoint."""

    quiet: Annotated[bool, Parameter(group=_RESULT, negative=())] = False
    """Show the result alone."""

    @property
    def workload_name(self) -> str:
        """What the result says was asked."""
        return self.mix or self.workload

    @property
    def result_label(self) -> str:
        """The label, given or not."""
        return self.label or (self.output.stem if self.output else self.endpoint)

    def plan(self) -> Plan:
        """What the workers are told.

        Raises:
            WrongOption: as it says.
        """
        try:
            return self._plan()
        except (NotAnEndpoint, UnknownChoice, UnknownMix, UnknownSizes) as error:
            raise WrongOption(str(error)) from error

    def _plan(self) -> Plan:
        if self.workload not in WORKLOADS:
            raise WrongOption(f"{self.workload!r} is no workload; there are {', '.join(WORKLOADS)}")
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
                f"{self.workers} workers and {self.connections} connections: a worker needs one"
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
        """There must be items enough that each connection can have those of its own requests."""
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
