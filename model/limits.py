"""DynamoDB's limits, each defined once, with its source and whether the bound is inclusive.

Source, unless stated otherwise: Developer Guide, "Quotas in Amazon DynamoDB". The inputs of
operations have further limits (``dynactor.api.requests.inputs``).
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * 1024
GIB: Final = 1024 * 1024 * 1024

# Items and values.
ITEM_SIZE_BYTES: Final = 400 * KIB  # <=
NESTING_LEVELS: Final = 32  # <=
NUMBER_DIGITS: Final = 38  # <= significant digits
NUMBER_EXPONENT_MAX: Final = 125  # <= 9.99…E+125
NUMBER_EXPONENT_MIN: Final = -130  # >= 1E-130
PARTITION_KEY_BYTES: Final = 2048  # <=, and at least 1
SORT_KEY_BYTES: Final = 1024  # <=, and at least 1
ATTRIBUTE_NAME_BYTES: Final = 65_535  # <=, and at least 1

# Requests.
REQUEST_BYTES: Final = 16 * MIB  # <=
# <= of JSON in the newer request layer (inferred: values of about 62 levels were the deepest).
NEWER_LAYER_JSON_LEVELS: Final = 128
PAGE_BYTES: Final = 1 * MIB  # a page ends with the item that reaches or passes it (S45)
BATCH_GET_KEYS: Final = 100  # <=
BATCH_GET_RESPONSE_BYTES: Final = 16 * MIB  # <=
# <= of one partition (measured on AWS in 2026; the API reference says 1 MB)
BATCH_GET_PARTITION_BYTES: Final = 1_458_173
BATCH_WRITE_REQUESTS: Final = 25  # <=
TRANSACTION_BYTES: Final = 4 * MIB  # <= for the items written, and for the items read
CLIENT_TOKEN_SECONDS: Final = 10 * 60  # < since its transaction ended (API reference)
LIST_TABLES_PAGE: Final = 100  # <=
LIST_CONTRIBUTOR_INSIGHTS_PAGE: Final = 100  # <= (botocore's service model)
LIST_EXPORTS_PAGE: Final = 25  # <= (botocore's service model)
LIST_IMPORTS: Final = 10  # by default (measured)
LIST_BULK_OPERATIONS: Final = 10  # by default
LIST_BACKUPS_PAGE: Final = 100  # <= (botocore's service model)
RESTORES: Final = 50  # <= at a time (API reference, "RestoreTableFromBackup")
INCREMENTAL_EXPORT_SECONDS: Final = (15 * 60, 24 * 60 * 60)  # both included (Developer Guide)
EXPORTS: Final = 300  # <= at a time ("Requesting a table export in DynamoDB")
IMPORTS: Final = 50  # <= at a time (API reference, "LimitExceededException")
BULK_OPERATIONS: Final = 50  # <= at a time (no source; as imports)
IMPORT_OBJECTS: Final = 50_000  # <= in one import ("DynamoDB import quotas")
# Exports and imports since they ended, bulk operations since they began (API reference).
TRANSFER_SECONDS: Final = 90 * 24 * 60 * 60  # <= for which they are listed
TRANSFER_TOKEN_SECONDS: Final = 8 * 60 * 60  # < for which a client token is known
RECOVERY_DAYS: Final = 35  # the longest retention of continuous backups
DAY_SECONDS: Final = 24 * 60 * 60
# Backups of deleted tables ("Point-in-time backups for DynamoDB").
SYSTEM_BACKUP_SECONDS: Final = 35 * DAY_SECONDS

# Expressions ("Limits in DynamoDB expressions").
EXPRESSION_BYTES: Final = 4 * KIB  # <=
EXPRESSION_OPERATORS: Final = 300  # <= in one expression
IN_OPERANDS: Final = 100  # <=
PLACEHOLDER_BYTES: Final = 255  # <= of one #name or :value
EXPRESSION_VALUES_BYTES: Final = 2 * MIB  # <= of all names and values together
DOCUMENT_PATH_DEPTH: Final = 32  # <=

# PartiQL ("PartiQL operators for DynamoDB").
PARTIQL_READS: Final = 50  # <= reads of one SELECT, as for the partition keys after IN
PARTIQL_READS_PAGE_ITEMS: Final = 10  # <= items in a page of several reads

# Tables and indexes.
TABLE_NAME_CHARACTERS: Final = (3, 255)  # both included
NAME_CHARACTER: Final = "[a-zA-Z0-9_.-]"
LOCAL_INDEXES: Final = 5  # <= (S6)
GLOBAL_INDEXES: Final = 20  # <= (S162)
GLOBAL_INDEX_KEY_ATTRIBUTES: Final = 4  # <= of each kind, HASH and RANGE
PROJECTED_ATTRIBUTES: Final = 100  # <= INCLUDE attributes over all indexes of a table
INDEX_ENTRY_OVERHEAD_BYTES: Final = 100  # per entry, storage only (S58, S113)
ITEM_COLLECTION_BYTES: Final = 10 * GIB  # <= on a table with local indexes (S15)
PARTITION_BYTES: Final = 10 * GIB  # a larger partition is split (S134)

# Capacity ("Read/write capacity units").
READ_UNIT_BYTES: Final = 4 * KIB
WRITE_UNIT_BYTES: Final = 1 * KIB
PARTITION_READ_UNITS: Final = 3000  # per second (S139)
PARTITION_WRITE_UNITS: Final = 1000  # per second (S139)
ON_DEMAND_PARTITIONS: Final = 4  # of a new on-demand table
ON_DEMAND_READ_UNITS: Final = 12_000  # per second, of a new on-demand table
ON_DEMAND_WRITE_UNITS: Final = 4_000  # per second, of a new on-demand table
# Decreases of a table's or index's throughput in a UTC day. After that, one in each hour without
# another one ("Quotas", "Decreasing provisioned throughput").
THROUGHPUT_DECREASES_PER_DAY: Final = 4
THROUGHPUT_DECREASE_SECONDS: Final = 60 * 60
# Switches of a table from provisioned to on-demand in 24 hours ("On-demand capacity mode",
# "Considerations when switching capacity modes").
ON_DEMAND_SWITCHES: Final = 4
ON_DEMAND_SWITCHES_SECONDS: Final = 24 * 60 * 60
# Changes of a table's class in 30 days ("Table classes", "Considerations").
TABLE_CLASS_CHANGES: Final = 2
TABLE_CLASS_CHANGES_SECONDS: Final = 30 * 24 * 60 * 60
# Changes of a table's encryption in 24 hours ("Encryption at rest", "Usage notes").
SSE_CHANGES: Final = 4
SSE_CHANGES_SECONDS: Final = 24 * 60 * 60
BURST_SECONDS: Final = 300  # of unused units are kept ("Burst and adaptive capacity")
PEAK_SETTLES_SECONDS: Final = 30 * 60  # until twice a peak is allowed ("On-demand capacity mode")
TABLE_READ_UNITS: Final = 40_000  # <= per second, of one table (default quota)
TABLE_WRITE_UNITS: Final = 40_000  # <= per second, of one table (default quota)
ACCOUNT_READ_UNITS: Final = 80_000  # per second, of an account; shown, never enforced
ACCOUNT_WRITE_UNITS: Final = 80_000  # per second, of an account; shown, never enforced
THROUGHPUT_UNITS: Final = 1_000_000_000_000  # <= in a request (dynalite, measured on AWS)

# Time to live ("Using time to live"): an item whose time is this far in the past never expires.
TIME_TO_LIVE_PAST_SECONDS: Final = 5 * 365 * 24 * 60 * 60  # <, five years
TIME_TO_LIVE_CHANGE_SECONDS: Final = 60 * 60  # between two changes (API reference)

# Streams (API reference of DynamoDB Streams).
LIST_STREAMS_PAGE: Final = 100  # <=
DESCRIBE_STREAM_SHARDS: Final = 100  # <=
GET_RECORDS: Final = 1_000  # <=
GET_RECORDS_BYTES: Final = 1 * MIB  # <=, except for a first record that is larger
SHARD_ITERATOR_SECONDS: Final = 15 * 60  # until an iterator expires

# Resource policies (API reference, PutResourcePolicy: 20 KB, with white space).
RESOURCE_POLICY_BYTES: Final = 20 * KIB  # <=

# Tags ("Tagging restrictions").
TAGS_PER_RESOURCE: Final = 50  # <=
