"""The settings of a database."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dynactor.actors.catalog.homes import Share
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveSettings
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.actors.splitting.split_watch import SplitSettings
from dynactor.model.account import ACCOUNT_ID, REGION
from dynactor.model.limits import BURST_SECONDS, ITEM_COLLECTION_BYTES, THROUGHPUT_DECREASES_PER_DAY
from dynactor.model.throttling.throttling_setting import ThrottlingSetting
from dynactor.storage.namespaces import Namespace
from dynactor.streams.shard import ShardSettings


class DatabaseSettings(Struct, frozen=True):
    """The settings of a database.

    ``table_transition_seconds`` is the time that a table stays CREATING, UPDATING or DELETING. Two
    settings are for tests: ``partitions_per_table`` overrides DynamoDB's formula, and
    ``copy_messages`` serializes and decodes every message.
    """

    region: str = REGION
    account_id: str = ACCOUNT_ID
    item_collection_limit_bytes: int = ITEM_COLLECTION_BYTES
    table_transition_seconds: float = 0.0
    partitions_per_table: int | None = None
    copy_messages: bool = False
    # The time that an added index stays in its first phase (S182).
    index_allocation_seconds: float = 0.05
    index_lag: IndexLag = NO_LAG
    # Maximum time that a read of a global index waits for earlier writes.
    index_reads_wait_seconds: float = 0.0
    streams: ShardSettings = ShardSettings()
    time_to_live: TimeToLiveSettings = TimeToLiveSettings()
    # The interval of rolling shards and trimming logs, in domain time and in real time.
    keep_streams_seconds: float = 30.0
    relays: RelaySettings = RelaySettings()
    splits: SplitSettings = SplitSettings()
    # The mode of throughput limits for tables without a tag.
    throttling: ThrottlingSetting = "auto"
    # The unused units of a new provisioned table or index, in seconds.
    initial_burst_seconds: float = BURST_SECONDS
    # Number of decreases of a table's or index's throughput in a day; after that, one in each hour.
    throughput_decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY
    # Whether changes of deletion protection, policies and tags need a pause, as on AWS.
    control_plane_cooldowns: bool = False
    # The pause of each transaction between its steps, for tests.
    transaction_delay: IndexLag = NO_LAG
    # Whether keys of some requests are counted while Contributor Insights is off.
    key_traffic: bool = True
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
    # The URLs of buckets for exports and imports, by their names.
    buckets: Mapping[str, str] = {}
    # The umask of new objects in directories; None for the process's.
    bucket_umask: int | None = None
    # The directory for the error logs of imports; None writes a log into the bucket of its import.
    import_log_directory: str | None = None
    # The directory for the files that clients upload; None uses a temporary directory.
    upload_directory: str | None = None
    # The tables to run, if several nodes share the tables; None runs all tables.
    share: Share | None = None

    @property
    def is_leader(self) -> bool:
        """Whether the database has what belongs to no single table: backups, exports, tokens."""
        return self.share is None or self.share.is_leader

    @property
    def table_arns(self) -> str:
        """The beginning of the ARNs of all tables."""
        return f"arn:aws:dynamodb:{self.region}:{self.account_id}:table/"
