"""The names and types of stored fields, compared with those that 6ee0983 stored.

Records are stored as maps by the names of their fields. Names of classes and modules are not
stored. A renamed field, or a removed alternative, makes old records unreadable. If the field has a
default, old records are silently read as if it had never been set.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from dynactor.actors.database.virtual_clock import StoredClock
from dynactor.actors.transactions.client_tokens import StoredToken
from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage.catalog import CatalogHead, PartitionHead, TableRecord
from dynactor.storage.data_directory import FORMAT_VERSION
from dynactor.streams.shard import Stream
from tests.support.databases.stored_forms import Field, fields

FORMS: dict[str, type[Struct]] = {
    "catalog head": CatalogHead,
    "table": TableRecord,
    "partition head": PartitionHead,
    "stream": Stream,
    "backup of a table": TableBackup,
    "virtual clock": StoredClock,
    "client token": StoredToken,
}
PINNED = Path(__file__).parent / "written_by_6ee0983" / "stored_forms.json"
BEFORE = msgspec.json.decode(PINNED.read_bytes(), type=dict[str, Field])
NOW = fields(FORMS)


@pytest.mark.parametrize("path", BEFORE)
def test_a_field_is_stored_as_before(path: str):
    before = BEFORE[path]
    assert path in NOW, "what was stored under this name would be lost"
    now = NOW[path]
    assert now.type == before.type
    assert set(now.alternatives) >= set(before.alternatives)
    assert now.may_be_missing or not before.may_be_missing


def test_old_records_are_read_without_later_fields():
    later = {path for path in NOW.keys() - BEFORE.keys() if not NOW[path].may_be_missing}
    # A record that was added later has its own fields.
    assert {path for path in later if parent(path) in BEFORE} == set()


def parent(path: str) -> str:
    """The path of the record that contains a field; a whole row's is one of its fields."""
    record, separator, _ = path.rpartition(".")
    if not separator:
        name = path.partition(": ")[0]
        return next((each for each in BEFORE if each.startswith(f"{name}: ")), "")
    return record.rstrip("[]{}")


def test_a_new_field_that_older_versions_would_lose_needs_a_higher_format():
    assert FORMAT_VERSION > 1 or NOW == BEFORE
