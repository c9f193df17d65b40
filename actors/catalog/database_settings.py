"""What may be set for a database."""

from __future__ import annotations

from msgspec import Struct

from dynactor.actors.catalog.streams import StreamSettings
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveSettings
from dynactor.actors.derived.indexes.index_lag import NO_LAG, IndexLag
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.splitting.split_watch import SplitSettings
from dynactor.model.limits import BURST_SECONDS, ITEM_COLLECTION_BYTES, THROUGHPUT_DECREASES_PER_DAY
from dynactor.model.throttling.throttling_setting import ThrottlingSetting
from dynactor.storage.namespaces import Namespace


class DatabaseSettings(Struct, frozen=True):
    """What may be set for a database.

    ``table_transition_seconds`` is how long a table stays CREATING, UPDATING or DELETING;
    ``partitions_per_table`` overrides DynamoDB's formula and ``copy_messages`` sends every
    message through its bytes, both for tests.
    """

    region: str = "us-east-1"
    account_id: str = "000000000000"
    item_collection_limit_bytes: int = ITEM_COLLECTION_BYTES
    table_transition_seconds: float = 0.0
    partitions_per_table: int | None = None
    copy_messages: bool = False
    # How long an index that is added stays in its first phase (S182).
    index_allocation_seconds: float = 0.05
    index_lag: IndexLag = NO_LAG
    # How long a read of a global index waits, at most, for what was answered before it.
    index_reads_wait_seconds: float = 0.0
    streams: StreamSettings = StreamSettings()
    time_to_live: TimeToLiveSettings = TimeToLiveSettings()
    # How often shards are rolled and logs trimmed, in domain time and in real time.
    keep_streams_seconds: float = 30.0
    relays: RelaySettings = RelaySettings()
    splits: SplitSettings = SplitSettings()
    # How throughput limits are kept where a table's tag says nothing else.
    throttling: ThrottlingSetting = "auto"
    # The unused units with which a new provisioned table or index begins, in seconds.
    initial_burst_seconds: float = BURST_SECONDS
    # How often in a day units may be taken away from a table or index before once an hour.
    throughput_decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY
    # How long a transaction waits between its steps, for tests.
    transaction_delay: IndexLag = NO_LAG
    # Whether the keys of some requests are recorded where Contributor Insights is off.
    key_traffic: bool = True
    # Whose tables these are; None if nothing is kept apart. ARNs of other regions name nothing.
    namespace: Namespace | None = None
    # What the names of all Kafka topics begin with, where another database has the plain names.
    topic_namespace: str = ""
    # Seed of ids and of the jitter of retries, for tests; without one they are unpredictable.
    seed: int | None = None
