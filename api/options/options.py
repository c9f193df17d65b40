"""The options of ``dynactor serve``, with their checks and derived settings."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass, field, fields
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Group, Parameter
from cyclopts.types import UInt16

from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.actors.runtime.clock import MAX_SPEED, Clock, SystemClock, VirtualClock
from dynactor.api.access.identities import Identities
from dynactor.api.admin_api.times import parse_time
from dynactor.api.http.browser_access import Access
from dynactor.api.http.server_identity import StoreKind
from dynactor.api.keys.access_keys import (
    BadCredentialsFile,
    Profile,
    access_keys,
    read_profiles,
)
from dynactor.api.keys.key_file import BadKeyFile, check_private
from dynactor.api.keys.signature import AccessKey
from dynactor.api.options.admin_options import AdminOptions, read_secret_option
from dynactor.api.options.configuration_error import ConfigurationError
from dynactor.api.options.kafka_options import KafkaOptions
from dynactor.api.options.log_settings import LogFormat, LogLevel
from dynactor.api.options.node_options import NodeOptions
from dynactor.api.options.trace_options import TraceOptions
from dynactor.model.limits import (
    BURST_SECONDS,
    ITEM_COLLECTION_BYTES,
    PARTITION_BYTES,
    THROUGHPUT_DECREASES_PER_DAY,
    TIME_TO_LIVE_CHANGE_SECONDS,
)
from dynactor.model.throttling.throttling_setting import ThrottlingSetting
from dynactor.storage.disk_sync import can_sync
from dynactor.storage.namespaces import Separation

# Each group fits on one screen.
_ACCESS: Final = Group("Addresses and access", sort_key=1)
_KEYS: Final = Group("Keys and policies", sort_key=1)
_TLS: Final = Group("TLS", sort_key=2)
_DATA: Final = Group("Data", sort_key=2)
_COPIES: Final = Group("Backups and buckets", sort_key=2)
_REGIONS: Final = Group("Regions and compatibility", sort_key=2)
_ADMIN: Final = Group("Admin port", sort_key=3)
_PROCESS: Final = Group("Process", sort_key=3)
_LIMITS: Final = Group("Throughput and expiry", sort_key=4)
_TEST_TABLES: Final = Group(
    "For testers: tables and indexes",
    help="Limits and delays that AWS fixes or hides.",
    sort_key=9,
)
_TEST_PARTITIONS: Final = Group(
    "For testers: partitions and throughput",
    help="Limits and delays that AWS fixes or hides.",
    sort_key=10,
)
_TEST_TIMES: Final = Group(
    "For testers: streams and clocks",
    help="Limits and delays that AWS fixes or hides.",
    sort_key=11,
)

Console: TypeAlias = Literal["full", "read-only"]
Regions: TypeAlias = Literal["shared", "apart"]
PolicyMode: TypeAlias = Literal["enforce", "observe"]
Compat: TypeAlias = Literal["dynamodb-local"]

_AWAITED: Final = "awaited"
# An index follows within milliseconds, unless the disk is full.
_INDEX_READS_WAIT_SECONDS: Final = 5.0
_SECONDS: Final = r"([0-9]+(?:\.[0-9]+)?)"
_FIXED_LAG: Final = re.compile(rf"fixed:{_SECONDS}\Z")
_RANDOM_LAG: Final = re.compile(rf"random:{_SECONDS}-{_SECONDS}:([0-9]+)\Z")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?\Z")
_ORIGIN: Final = re.compile(r"(?:\*|null|[a-z][a-z0-9+.-]*://[^/?#*\s]+)\Z")
_BUCKET: Final = re.compile(r"[A-Za-z0-9]+[A-Za-z0-9._-]*[A-Za-z0-9]+\Z")
_REGION: Final = re.compile(r"[A-Za-z0-9-]+\Z")


def _default_data_dir() -> Path:
    """The default data directory, by the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "dynactor"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options. Each has an environment variable: ``--data-dir`` is DYNACTOR_DATA_DIR.

    Invariant: an address other than loopback was allowed explicitly.
    """

    host: Annotated[str, Parameter(group=_ACCESS)] = "127.0.0.1"
    """Address to listen on. An address other than loopback needs access keys or --allow-open."""

    port: Annotated[UInt16, Parameter(group=_ACCESS)] = 8000
    """Port to listen on. 0 takes a free port."""

    data_dir: Annotated[Path | None, Parameter(group=_DATA)] = None
    """Directory of the data. Default: dynactor under $XDG_DATA_HOME or ~/.local/share."""

    in_memory: Annotated[bool, Parameter(group=_DATA, negative=())] = False
    """Keep data in memory only. The data is lost when the server stops."""

    store: Annotated[str | None, Parameter(group=_DATA)] = None
    """URL of a PostgreSQL database that keeps the data, such as postgresql://user@host/dynactor.
    Needs the extra dynactor[postgresql]."""

    read_store: Annotated[str | None, Parameter(group=_DATA)] = None
    """URL of a hot standby of --store, which answers eventually consistent reads. While it can't be
    used, the primary answers them."""

    cache_mib: Annotated[int | None, Parameter(group=_DATA)] = None
    """Memory for cached data, in MiB, at least 1. Default: a sixteenth of the memory of the machine
    or control group, at least 256, at most a quarter."""

    backup_dir: Annotated[Path | None, Parameter(group=_COPIES)] = None
    """Directory for the backups of dynactor backup, on the same file system as the data."""

    bucket: Annotated[tuple[str, ...], Parameter(group=_COPIES, negative=())] = ()
    """Bucket for exports and imports, as NAME=URL: exports=file:///var/exports, or exports=s3://BUCKET
    with the extra dynactor[s3]. Repeat the option for several buckets."""

    seed: Annotated[Path | None, Parameter(group=_COPIES)] = None
    """Directory with a folder for each table: table.json and data files, as dynactor export writes
    them. Tables that do not exist are filled before the server answers."""

    serve_backup: Annotated[bool, Parameter(group=_COPIES, negative=())] = False
    """Allow a backup as --data-dir. The server changes the backup, so it is no longer one."""

    admin_port: Annotated[UInt16 | None, Parameter(group=_ADMIN)] = None
    """Port for metrics, health checks, backups, replays, insights and the virtual clock. 0 takes a
    free port. Default: the first free port from 8001 to 8010, with --port 0 any free port."""

    no_admin: Annotated[bool, Parameter(group=_ADMIN, negative=())] = False
    """Do not open the admin port."""

    console: Annotated[Console, Parameter(group=_ADMIN)] = "full"
    """Web pages on the admin port that show the tables. read-only: they can't change anything."""

    no_console: Annotated[bool, Parameter(group=_ADMIN, negative=())] = False
    """Do not serve the console."""

    admin_host: Annotated[str, Parameter(group=_ADMIN)] = "127.0.0.1"
    """Address of the admin port. An address other than loopback needs --admin-read-secret-file,
    --admin-client-ca or --allow-open."""

    region: Annotated[str, Parameter(group=_REGIONS)] = "us-east-1"
    """Region in ARNs, for example eu-west-1. The server accepts requests for any region."""

    regions: Annotated[Regions, Parameter(group=_REGIONS)] = "shared"
    """Tables of regions. shared: all regions have the same tables. apart: each region has its own
    tables; a request's region is in its signature. Earlier tables then belong to --region."""

    compat: Annotated[Compat | None, Parameter(group=_REGIONS)] = None
    """Behave as DynamoDB Local does: --gsi-lag awaited, --throttling observe, tables and indexes
    that are ACTIVE at once, and separate tables for each access key and region. Unused
    AttributeDefinitions are no error."""

    shared_db: Annotated[bool, Parameter(group=_REGIONS, negative=())] = False
    """With --compat: share all tables, as -sharedDb does."""

    log_format: Annotated[LogFormat, Parameter(group=_PROCESS)] = "text"
    """Format of log lines: text, or json for one JSON object per line."""

    log_level: Annotated[LogLevel, Parameter(group=_PROCESS)] = "info"
    """Lowest level to log. debug logs every request."""

    credentials_file: Annotated[Path | None, Parameter(group=_KEYS)] = None
    """File with the access keys that clients must sign with, in the format of ~/.aws/credentials,
    readable by its owner only or encrypted. Without the option every access key is accepted."""

    credentials_key_file: Annotated[Path | None, Parameter(group=_KEYS)] = None
    """File with the secret that decrypts a --credentials-file of dynactor encrypt-keys."""

    policy_dir: Annotated[Path | None, Parameter(group=_KEYS)] = None
    """Directory of IAM policies as JSON files. Profiles of --credentials-file name their policies,
    and a key may do only what its policies allow. Without the option a key may do everything."""

    policy_mode: Annotated[PolicyMode, Parameter(group=_KEYS)] = "enforce"
    """enforce refuses requests that no policy allows. observe logs these requests, and executes
    them."""

    explain_access: Annotated[bool, Parameter(group=_KEYS, negative=())] = False
    """Tell callers that ask with X-Dynactor-Explain-Access which statements of policies decide. The
    explanation shows parts of policies, and whether a table exists."""

    tls_cert: Annotated[Path | None, Parameter(group=_TLS)] = None
    """File with the certificate of the server and its chain, in PEM form. All ports then speak
    TLS."""

    tls_key: Annotated[Path | None, Parameter(group=_TLS)] = None
    """File with the private key of --tls-cert, in PEM form, without a password."""

    tls_self_signed: Annotated[bool, Parameter(group=_TLS, negative=())] = False
    """Make a certificate for development in the data directory. Needs the extra dynactor[tls]."""

    allow_reset: Annotated[bool, Parameter(group=_ACCESS, negative=())] = False
    """Allow reset and snapshots over the admin port for data on disk. With --in-memory they are
    always allowed."""

    allow_faults: Annotated[bool, Parameter(group=_ACCESS, negative=())] = False
    """Allow tests to inject faults over the admin port."""

    max_connections: Annotated[int | None, Parameter(group=_PROCESS)] = None
    """Most connections of clients. Further connections are closed at once. Default: about
    half of the files that the process may open."""

    drain_seconds: Annotated[float, Parameter(group=_PROCESS)] = 10
    """Seconds that requests in flight may take when the server stops."""

    exit_with_parent: Annotated[bool, Parameter(group=_PROCESS, negative=())] = False
    """Stop when the process that started the server ends, even after SIGKILL."""

    allow_open: Annotated[bool, Parameter(group=_ACCESS, negative=())] = False
    """Listen on any address although every access key is accepted."""

    allowed_hosts: Annotated[tuple[str, ...], Parameter(group=_ACCESS, negative=())] = ()
    """Host names that clients may use, in addition to localhost and IP addresses. Example:
    db.example.com."""

    cors_origins: Annotated[tuple[str, ...], Parameter(group=_ACCESS, negative=())] = ()
    """Origins of web pages that may use the server from a browser. Example:
    https://app.example.com. * allows all."""

    ttl_delay_seconds: Annotated[float, Parameter(group=_LIMITS)] = 1.0
    """Lowest number of seconds between the expiry of an item and its deletion."""

    ttl_deletes_per_second: Annotated[float, Parameter(group=_LIMITS)] = 4_000.0
    """Highest number of expired items to delete in a second, over all tables."""

    throttling: Annotated[ThrottlingSetting, Parameter(group=_LIMITS)] = "auto"
    """Behavior above a table's capacity. enforce throttles, observe only counts, off does neither,
    auto enforces for provisioned tables and observes on-demand tables. The tag dynactor:throttling
    overrides the option for one table."""

    throughput_decreases_per_day: Annotated[int, Parameter(group=_LIMITS)] = (
        THROUGHPUT_DECREASES_PER_DAY
    )
    """Number of times in a UTC day that the throughput of a table or index can be lowered. After
    that number, it can be lowered once an hour."""

    key_traffic: Annotated[bool, Parameter(group=_LIMITS)] = True
    """Count a sample of the requests by key, for dynactor advise."""

    admin_callers: AdminOptions = field(default_factory=AdminOptions)

    nodes: NodeOptions = field(default_factory=NodeOptions)

    kafka: KafkaOptions = field(default_factory=KafkaOptions)

    traces: TraceOptions = field(default_factory=TraceOptions)

    item_collection_limit_bytes: Annotated[int, Parameter(group=_TEST_TABLES)] = (
        ITEM_COLLECTION_BYTES
    )
    """Largest size of an item collection, in a table with local secondary indexes."""

    partition_limit_bytes: Annotated[int, Parameter(group=_TEST_PARTITIONS)] = PARTITION_BYTES
    """Size at which a partition of a table or global secondary index splits."""

    split_heat_seconds: Annotated[float, Parameter(group=_TEST_PARTITIONS)] = 60
    """Seconds near its throughput limit after which a partition splits."""

    split_check_seconds: Annotated[float, Parameter(group=_TEST_PARTITIONS)] = 5
    """Seconds between two searches for partitions to split."""

    initial_burst_seconds: Annotated[float, Parameter(group=_TEST_PARTITIONS)] = BURST_SECONDS
    """Unused capacity of a new provisioned table or index, in seconds of its units, at most 300.
    With 1, a test sees throttling at once."""

    table_transition_seconds: Annotated[float, Parameter(group=_TEST_TABLES)] = 0
    """Seconds that a table stays CREATING, UPDATING or DELETING."""

    control_plane_cooldowns: Annotated[bool, Parameter(group=_TEST_TABLES)] = False
    """Refuse a second change of a table's deletion protection or policy within 15 seconds, and of
    its tags within 1.5 seconds, as AWS does."""

    partitions_per_table: Annotated[int | None, Parameter(group=_TEST_PARTITIONS)] = None
    """Number of partitions of a new table. Default: DynamoDB's own rule."""

    index_allocation_seconds: Annotated[float, Parameter(group=_TEST_TABLES)] = 0.05
    """Seconds that an added index stays CREATING with Backfilling false."""

    gsi_lag: Annotated[str, Parameter(group=_TEST_TABLES)] = "none"
    """Lag of global secondary indexes: none, fixed:SECONDS or random:FROM-TO:SEED, for example
    random:0-0.5:7. With awaited, a read waits until the index has every write acknowledged
    before."""

    transaction_delay: Annotated[str, Parameter(group=_TEST_TABLES)] = "none"
    """Delay between the steps of a transaction: none, fixed:SECONDS or random:FROM-TO:SEED."""

    shard_roll_seconds: Annotated[float, Parameter(group=_TEST_TIMES)] = 4 * 60 * 60
    """Age at which a shard of a stream is closed and continued by another one."""

    stream_retention_seconds: Annotated[float, Parameter(group=_TEST_TIMES)] = 24 * 60 * 60
    """Seconds that stream records can be read."""

    keep_streams_seconds: Annotated[float, Parameter(group=_TEST_TIMES)] = 30
    """Seconds between two checks for shards to close and records to trim."""

    virtual_clock: Annotated[str | None, Parameter(group=_TEST_TIMES)] = None
    """Run on a virtual clock that starts at this time: ISO 8601, epoch seconds, or now."""

    clock_speed: Annotated[float, Parameter(group=_TEST_TIMES)] = 0
    """Speed of the virtual clock: 1 is real time, 0 stops the clock."""

    ttl_change_interval_seconds: Annotated[float, Parameter(group=_TEST_TIMES)] = (
        TIME_TO_LIVE_CHANGE_SECONDS
    )
    """Lowest number of seconds between two changes of a table's time to live."""

    ttl_transition_seconds: Annotated[float, Parameter(group=_TEST_TIMES)] = 0
    """Lowest number of seconds that time to live stays ENABLING or DISABLING. 0: neither state is
    visible."""

    copy_messages: Annotated[bool, Parameter(group=_TEST_TIMES, negative=())] = False
    """Serialize every message between actors."""

    def __post_init__(self) -> None:
        if self.in_memory and self.data_dir is not None:
            raise ConfigurationError("--in-memory keeps nothing in --data-dir: give one of them")
        self._check_store()
        self._check_nodes()
        if self.store_kind == "disk" and not can_sync():
            raise ConfigurationError(
                "Data can be kept on disk only on Linux and macOS: dynactor can't make it durable "
                "on this system. Start with --in-memory, or in a container"
            )
        self._check_hosts()
        self._check_tls()
        self.access_keys  # noqa: B018 - to find errors at once
        self.credentials_secret  # noqa: B018 - likewise
        if self.policy_dir is not None:
            self.identities  # noqa: B018 - likewise
        elif self.explain_access:
            raise ConfigurationError("--explain-access explains policies: give --policy-dir")
        # The region becomes a part of ARNs, whose fields are separated by colons.
        if _REGION.match(self.region) is None:
            raise ConfigurationError(
                f"--region {self.region!r} is not a region: give letters, digits and hyphens, for "
                "example us-east-1"
            )
        self._check_names()
        self.buckets  # noqa: B018 - to find errors at once
        if self.cache_mib is not None and self.cache_mib < 1:
            raise ConfigurationError(
                "--cache-mib must be at least 1: without the option, the server chooses a size"
            )
        self._check_numbers()
        self._check_backup_dir()
        if self.max_connections == 0:
            raise ConfigurationError("--max-connections must be at least 1")
        if self.partitions_per_table is not None and self.partitions_per_table < 1:
            raise ConfigurationError("--partitions-per-table must be at least 1")
        for option in ("partition_limit_bytes", "split_heat_seconds", "split_check_seconds"):
            if getattr(self, option) <= 0:
                raise ConfigurationError(f"--{option.replace('_', '-')} must be more than 0")
        if self.initial_burst_seconds > BURST_SECONDS:
            raise ConfigurationError(
                f"--initial-burst-seconds must be at most {BURST_SECONDS}, as unused capacity is "
                "kept for that time"
            )
        if self.ttl_deletes_per_second <= 0:
            raise ConfigurationError("--ttl-deletes-per-second must be more than 0")
        if self.allow_faults and self.no_admin:
            raise ConfigurationError("--allow-faults needs the admin port: leave out --no-admin")
        if self.virtual_clock is not None:
            if self.no_admin:
                raise ConfigurationError(
                    "--virtual-clock needs the admin port: leave out --no-admin"
                )
            self._stopped_clock()
        if self.clock_speed > MAX_SPEED:
            raise ConfigurationError(f"--clock-speed must be at most {MAX_SPEED:,.0f}")

    def _check_hosts(self) -> None:
        """Refuse open access that is not explicitly allowed."""
        if self.allow_open:
            return
        if self.credentials_file is None and not _is_loopback(self.host):
            raise ConfigurationError(
                f"Every client that can reach {self.host} is accepted: give --credentials-file "
                "with the keys that clients must sign with, or add --allow-open if that is intended"
            )
        if not (_is_loopback(self.admin_host) or self.admin_callers.callers.restricts_reading):
            raise ConfigurationError(
                f"Every client that can reach {self.admin_host} may read metrics, keys of items "
                "and the state of the server there: give --admin-read-secret-file or "
                "--admin-client-ca, or add --allow-open if that is intended. Changes need "
                "--admin-secret-file anyway"
            )

    def _check_tls(self) -> None:
        """Refuse half of a certificate, and two certificates."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("--tls-cert and --tls-key belong together: give both of them")
        if self.tls_self_signed and self.tls_cert is not None:
            raise ConfigurationError(
                "--tls-self-signed makes a certificate: leave out --tls-cert and --tls-key"
            )
        has_tls = self.tls_self_signed or self.tls_cert is not None
        for option, path in (
            ("--admin-client-ca", self.admin_callers.admin_client_ca),
            ("--peer-ca", self.nodes.peer_ca),
        ):
            if path is not None and not has_tls:
                raise ConfigurationError(
                    f"{option} needs TLS: give --tls-cert and --tls-key, or --tls-self-signed"
                )

    def _check_names(self) -> None:
        """Refuse names that no client can send, because they are mistakes."""
        for name in _split(self.allowed_hosts):
            if _HOST_NAME.match(name) is None:
                raise ConfigurationError(
                    f"--allowed-hosts {name} is not a host name: leave out scheme and port, as in "
                    "box.example.com"
                )
        for origin in _split(self.cors_origins):
            if _ORIGIN.match(origin) is None:
                raise ConfigurationError(
                    f"--cors-origins {origin} is not an origin: give only scheme, host and port, "
                    "as in https://app.example.com, or * for all"
                )

    def _check_store(self) -> None:
        """Refuse options of the embedded engine, which have no effect on PostgreSQL."""
        if self.store is None:
            if self.read_store is not None:
                raise ConfigurationError(
                    "--read-store is a standby of --store: give the URL of the primary, too"
                )
            return
        for option, is_given, instead in (
            ("--data-dir", self.data_dir is not None, "the data are in PostgreSQL"),
            ("--in-memory", self.in_memory, "the data are in PostgreSQL"),
            ("--cache-mib", self.cache_mib is not None, "set shared_buffers of PostgreSQL"),
            ("--backup-dir", self.backup_dir is not None, "use PostgreSQL's own backups"),
            ("--serve-backup", self.serve_backup, "restore PostgreSQL's own backup"),
        ):
            if is_given:
                raise ConfigurationError(f"--store can't be combined with {option}: {instead}")

    def _check_nodes(self) -> None:
        """Refuse options that one node could not apply for the whole cluster."""
        if self.nodes.peer_listen is None:
            return
        if self.store is None:
            raise ConfigurationError(
                "--peer-listen needs --store postgresql://…, the database that the nodes share"
            )
        if self.credentials_file is not None and not self.nodes.is_authenticated:
            raise ConfigurationError(
                "--credentials-file with --peer-listen needs --peer-secret-file or --peer-ca, "
                "because nodes trust each other's word for the address of a client"
            )
        for option, is_given, reason in (
            ("--virtual-clock", self.virtual_clock is not None, "it is the clock of one server"),
            ("--allow-reset", self.allow_reset, "a reset is for tests with one server"),
            ("--seed", self.seed is not None, "two nodes would fill the same table"),
            ("--allow-faults", self.allow_faults, "faults are for tests with one server"),
        ):
            if is_given:
                raise ConfigurationError(f"--peer-listen can't be combined with {option}: {reason}")

    def _check_backup_dir(self) -> None:
        """Check that backups can be requested, and are outside the data directory."""
        if self.backup_dir is None:
            return
        if self.no_admin:
            raise ConfigurationError("--backup-dir needs the admin port: leave out --no-admin")
        # Resolved, so that links don't hide a path into the data directory.
        backups, data = self.backup_dir.expanduser().resolve(), self.data_directory
        if data is not None and backups.is_relative_to(data.resolve()):
            raise ConfigurationError(
                f"--backup-dir {self.backup_dir} is in the data directory {data}: give a directory "
                "beside it"
            )

    def _check_numbers(self) -> None:
        """Refuse times, sizes and counts that are negative or not finite."""
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                name = option.name.replace("_", "-")
                raise ConfigurationError(f"--{name} must be at least 0, and finite: it is {value}")

    def new_clock(self) -> Clock:
        """Make the clock of the stored data: the machine's, or a virtual clock.

        Raises:
            ConfigurationError: the virtual clock can't start at this time.
        """
        clock = self._stopped_clock()
        if isinstance(clock, VirtualClock):
            clock.set_speed(self.clock_speed)
        return clock

    def _stopped_clock(self) -> Clock:
        if self.virtual_clock is None:
            return SystemClock()
        try:
            return VirtualClock(
                time.time() if self.virtual_clock == "now" else parse_time(self.virtual_clock)
            )
        except ValueError as error:
            raise ConfigurationError(f"--virtual-clock: {error}") from None

    @property
    def buckets(self) -> dict[str, str]:
        """The URLs of the buckets by their names.

        Raises:
            ConfigurationError: a value is not a name and a URL.
        """
        urls: dict[str, str] = {}
        for text in _split(self.bucket):
            name, separator, url = text.partition("=")
            if not separator or _BUCKET.match(name) is None:
                raise ConfigurationError(
                    f"--bucket {text} is not understood: give NAME=URL, as in "
                    "exports=file:///var/exports"
                )
            if name in urls:
                raise ConfigurationError(f"--bucket {name} is given twice")
            # This imports structlog, which the server's start delays.
            from dynactor.storage.buckets.open_buckets import (  # noqa: PLC0415
                BadBucketUrl,
                open_bucket,
            )

            try:
                open_bucket(url)
            except BadBucketUrl as error:
                raise ConfigurationError(f"--bucket {text}: {error}") from None
            urls[name] = url
        return urls

    @property
    def separation(self) -> Separation:
        """The unit that has separate tables: the server, each region or each access key."""
        if self.compat is not None and not self.shared_db:
            return "access key"
        return "region" if self.regions == "apart" else "shared"

    @property
    def index_lag(self) -> IndexLag:
        """The lag of global indexes."""
        return index_lag(self.gsi_lag)

    @property
    def index_reads_wait_seconds(self) -> float:
        """Seconds that a read of a global index waits at most for acknowledged writes."""
        return index_reads_wait_seconds(self.gsi_lag)

    @property
    def transaction_steps_delay(self) -> IndexLag:
        """The delay between the steps of a transaction."""
        return transaction_steps_delay(self.transaction_delay)

    @property
    def console_mode(self) -> Console | None:
        """The mode of the console; None if there is no console."""
        return None if self.no_console or self.no_admin else self.console

    @property
    def store_kind(self) -> StoreKind:
        """The kind of store that keeps the data."""
        if self.store is not None:
            return "postgresql"
        return "memory" if self.in_memory else "disk"

    @property
    def data_directory(self) -> Path | None:
        """The directory of the data on disk, else None."""
        if self.store_kind != "disk":
            return None
        return (self.data_dir or _default_data_dir()).expanduser().absolute()

    @property
    def tls_directory(self) -> Path:
        """The directory of a certificate for development; data in memory has one of its own."""
        data = self.data_directory
        if data is not None:
            return data / "tls"
        return _default_data_dir().with_name("dynactor-tls").expanduser().absolute()

    @property
    def host_names(self) -> list[str]:
        """The host names of --allowed-hosts."""
        return _split(self.allowed_hosts)

    # Read once: the checked value is the used value, and a pipe can't be read twice.
    @cached_property
    def access_keys(self) -> tuple[AccessKey, ...] | None:
        """The keys that clients must sign with; None accepts any key.

        Raises:
            ConfigurationError: the file has no usable value.
        """
        return None if self.profiles is None else access_keys(self.profiles)

    @cached_property
    def credentials_secret(self) -> str | None:
        """The secret that decrypts the credentials file; None for a file that is not encrypted.

        Raises:
            ConfigurationError: the file has no usable value.
        """
        if self.credentials_key_file is None:
            return None
        if self.credentials_file is None:
            raise ConfigurationError(
                "--credentials-key-file decrypts --credentials-file: give both of them"
            )
        try:
            check_private(self.credentials_key_file.expanduser())
        except BadKeyFile as error:
            raise ConfigurationError(f"--credentials-key-file: {error}") from None
        return read_secret_option(self.credentials_key_file, "--credentials-key-file")

    @cached_property
    def profiles(self) -> tuple[Profile, ...] | None:
        """The profiles of --credentials-file.

        Raises:
            ConfigurationError: the file has no usable value.
        """
        if self.credentials_file is None:
            return None
        try:
            return read_profiles(self.credentials_file.expanduser(), self.credentials_secret)
        except BadCredentialsFile as error:
            raise ConfigurationError(f"--credentials-file: {error}") from None

    @cached_property
    def identities(self) -> Identities:
        """The users and roles. Without policies, users may do everything.

        Raises:
            ConfigurationError: a file is not valid.
        """
        # Imported only by a server, because it imports the settings of databases.
        from dynactor.api.access.policy_files import (  # noqa: PLC0415
            BadPolicyFile,
            open_identities,
            read_identities,
        )

        profiles = self.profiles
        if self.policy_dir is None:
            return open_identities(profiles or ())
        if profiles is None:
            raise ConfigurationError(
                "--policy-dir needs --credentials-file: its profiles name the policies of their "
                "keys"
            )
        # Imported only for policies, because it imports the settings of databases.

        try:
            return read_identities(profiles, self.policy_dir.expanduser())
        except BadPolicyFile as error:
            raise ConfigurationError(f"--policy-dir: {error}") from None

    @property
    def access(self) -> Access:
        """The access of web pages to the main port."""
        return self._access(self.host)

    @property
    def admin_access(self) -> Access:
        """The access of web pages to the admin port: only the port's own pages may read."""
        return Access(host_names=self._access(self.admin_host).host_names)

    def _access(self, host: str) -> Access:
        """The access of web pages to a listener.

        A listener on a network is reached by unknown names, so names are checked only if some are
        configured.
        """
        names = frozenset(name.lower() for name in _split(self.allowed_hosts))
        return Access(
            host_names=names if names or _is_loopback(host) else None,
            origins=frozenset(_split(self.cors_origins)),
        )


def index_lag(gsi_lag: str) -> IndexLag:
    """Parse ``--gsi-lag``.

    Raises:
        ConfigurationError: the text is not a lag.
    """
    if gsi_lag == _AWAITED:
        return NO_LAG
    return _lag("--gsi-lag", gsi_lag, f"none, {_AWAITED}")


def index_reads_wait_seconds(gsi_lag: str) -> float:
    """Seconds that a read of a global index waits at most for acknowledged writes."""
    return _INDEX_READS_WAIT_SECONDS if gsi_lag == _AWAITED else 0.0


def transaction_steps_delay(transaction_delay: str) -> IndexLag:
    """Parse ``--transaction-delay``.

    Raises:
        ConfigurationError: the text is not a delay.
    """
    return _lag("--transaction-delay", transaction_delay, "none")


def _lag(option: str, text: str, words: str) -> IndexLag:
    if text == "none":
        return NO_LAG
    fixed = _FIXED_LAG.match(text)
    if fixed is not None:
        return IndexLag(float(fixed[1]), float(fixed[1]))
    drawn = _RANDOM_LAG.match(text)
    if drawn is None:
        raise ConfigurationError(
            f"{option} {text} is not understood: give {words}, fixed:SECONDS or "
            "random:FROM-TO:SEED, for example random:0-0.2:7"
        )
    return IndexLag(float(drawn[1]), float(drawn[2]), int(drawn[3]))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _split(texts: tuple[str, ...]) -> list[str]:
    """The values of a list, which may be separated by commas too."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]
