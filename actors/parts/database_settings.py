"""The settings of a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Struct

from dynactor.actors.catalog.share import Share
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.feeds.index_lag import (
    NO_LAG,
    IndexLag,
    parse_index_lag,
    parse_transaction_delay,
)
from dynactor.actors.splitting.split_settings import SplitSettings
from dynactor.model.account import ACCOUNT_ID, REGION
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.limits import BURST_SECONDS, ITEM_COLLECTION_BYTES, THROUGHPUT_DECREASES_PER_DAY
from dynactor.model.option import Option, OptionGroup
from dynactor.model.throttling.throttling_setting import ThrottlingSetting
from dynactor.storage.buckets.bucket_names import parse_buckets
from dynactor.storage.namespaces import Namespace
from dynactor.streams.shard import ShardSettings

# The region becomes a part of ARNs, whose fields are separated by colons.
_REGION: Final = re.compile(r"[A-Za-z0-9-]+\Z")


def _region(text: str) -> str:
    if _REGION.match(text) is None:
        raise ConfigurationError(
            f"--region {text!r} is not a region: give letters, digits and hyphens, for example "
            "us-east-1"
        )
    return text


class DatabaseSettings(Struct, frozen=True):
    """The settings of a database. Fields without an option follow from other options, or tests."""

    region: Annotated[str, Option("--region", OptionGroup.REGIONS, _region)] = REGION
    """Region in ARNs, for example eu-west-1. The server accepts requests for any region."""

    buckets: Annotated[
        Mapping[str, str],
        Option("--bucket", OptionGroup.COPIES, parse_buckets, tuple[str, ...], (), place=1),
    ] = {}
    """Bucket for exports and imports, as NAME=URL: exports=file:///var/exports, or exports=s3://BUCKET
    with the extra dynactor[s3]. Repeat the option for several buckets."""

    time_to_live: TimeToLiveSettings = TimeToLiveSettings()

    throttling: Annotated[ThrottlingSetting, Option("--throttling", OptionGroup.LIMITS)] = "auto"
    """Behavior above a table's capacity. enforce throttles, observe only counts, off does neither,
    auto enforces for provisioned tables and observes on-demand tables. The tag dynactor:throttling
    overrides the option for one table."""

    throughput_decreases_per_day: Annotated[
        int, Option("--throughput-decreases-per-day", OptionGroup.LIMITS)
    ] = THROUGHPUT_DECREASES_PER_DAY
    """Number of times in a UTC day that the throughput of a table or index can be lowered. After
    that number, it can be lowered once an hour."""

    key_traffic: Annotated[bool, Option("--key-traffic", OptionGroup.LIMITS, has_negative=True)] = (
        True
    )
    """Count a sample of the requests by key, for dynactor advise."""

    item_collection_limit_bytes: Annotated[
        int, Option("--item-collection-limit-bytes", OptionGroup.TEST_TABLES)
    ] = ITEM_COLLECTION_BYTES
    """Largest size of an item collection, in a table with local secondary indexes."""

    table_transition_seconds: Annotated[
        float, Option("--table-transition-seconds", OptionGroup.TEST_TABLES)
    ] = 0
    """Seconds that a table stays CREATING, UPDATING or DELETING."""

    control_plane_cooldowns: Annotated[
        bool, Option("--control-plane-cooldowns", OptionGroup.TEST_TABLES, has_negative=True)
    ] = False
    """Refuse a second change of a table's deletion protection or policy within 15 seconds, and of
    its tags within 1.5 seconds, as AWS does."""

    # The time that an added index stays in its first phase (S182).
    index_allocation_seconds: Annotated[
        float, Option("--index-allocation-seconds", OptionGroup.TEST_TABLES)
    ] = 0.05
    """Seconds that an added index stays CREATING with Backfilling false."""

    index_lag: Annotated[
        IndexLag, Option("--gsi-lag", OptionGroup.TEST_TABLES, parse_index_lag, str, "none")
    ] = NO_LAG
    """Lag of global secondary indexes: none, fixed:SECONDS or random:FROM-TO:SEED, for example
    random:0-0.5:7. With awaited, a read waits until the index has every write acknowledged
    before."""

    transaction_delay: Annotated[
        IndexLag,
        Option(
            "--transaction-delay", OptionGroup.TEST_TABLES, parse_transaction_delay, str, "none"
        ),
    ] = NO_LAG
    """Delay between the steps of a transaction: none, fixed:SECONDS or random:FROM-TO:SEED."""

    splits: SplitSettings = SplitSettings()

    initial_burst_seconds: Annotated[
        float,
        Option(
            "--initial-burst-seconds",
            OptionGroup.TEST_PARTITIONS,
            at_most=BURST_SECONDS,
            reason="as unused capacity is kept for that time",
        ),
    ] = BURST_SECONDS
    """Unused capacity of a new provisioned table or index, in seconds of its units, at most 300.
    With 1, a test sees throttling at once."""

    partitions_per_table: Annotated[
        int | None, Option("--partitions-per-table", OptionGroup.TEST_PARTITIONS, at_least=1)
    ] = None
    """Number of partitions of a new table. Default: DynamoDB's own rule."""

    streams: ShardSettings = ShardSettings()

    # In domain time and in real time.
    keep_streams_seconds: Annotated[
        float, Option("--keep-streams-seconds", OptionGroup.TEST_TIMES)
    ] = 30
    """Seconds between two checks for shards to close and records to trim."""

    copy_messages: Annotated[bool, Option("--copy-messages", OptionGroup.TEST_TIMES, place=3)] = (
        False
    )
    """Serialize every message between actors."""

    relays: RelaySettings = RelaySettings()

    account_id: str = ACCOUNT_ID
    # The namespace of the tables; None without namespaces. ARNs of other regions are unknown.
    namespace: Namespace | None = None
    # The prefix of all Kafka topics, if another database uses the names without a prefix.
    topic_namespace: str = ""
    # Whether the steps of requests are timed for traces.
    is_traced: bool = False
    # Like DynamoDB Local, CreateTable drops attribute definitions that no key uses, and the answers
    # of changes show a table in the state that it reaches.
    is_like_dynamodb_local: bool = False
    # Seed of ids and of the jitter of retries, for tests; without a seed they are unpredictable.
    seed: int | None = None
    # The umask of new objects in directories; None for the process's.
    bucket_umask: int | None = None
    # The directory for the error logs of imports; None writes a log into the bucket of its import.
    import_log_directory: str | None = None
    # The directory for the files that clients upload; None uses a temporary directory.
    upload_directory: str | None = None
    # The tables to run, if several nodes share the tables; None runs all tables.
    share: Share | None = None

    @property
    def index_reads_wait_seconds(self) -> float:
        """Maximum time that a read of a global index waits for earlier writes."""
        return self.index_lag.reads_wait_seconds

    @property
    def is_leader(self) -> bool:
        """Whether the database has what belongs to no single table: backups, exports, tokens."""
        return self.share is None or self.share.is_leader

    @property
    def table_arns(self) -> str:
        """The beginning of the ARNs of all tables."""
        return f"arn:aws:dynamodb:{self.region}:{self.account_id}:table/"
