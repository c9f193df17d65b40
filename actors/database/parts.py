"""The parts of the control plane.

Steps of all parts run in this order, and parts close in the reverse order. So the tables close
after all work on them has stopped, and the broker closes last.
"""

from __future__ import annotations

from typing import Final

from dynactor.actors.backups.point_in_time import RecoverySwitch
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.parts.part import Part
from dynactor.actors.phases.contributor_insights import ContributorInsightsSwitch
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.phases.index_phases import IndexPhases
from dynactor.actors.phases.log_trimming import LogTrimmer
from dynactor.actors.phases.publishing import Publishing
from dynactor.actors.phases.replays import Replays
from dynactor.actors.phases.space_reclaim import SpaceReclaimer
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.phases.table_homes import TableHomes
from dynactor.actors.phases.time_to_live_phases import TimeToLivePhases
from dynactor.actors.restores.restore_phases import RestorePhases
from dynactor.actors.restores.table_deletion import TableDeletion
from dynactor.actors.transfers.bulk_operations import BulkOperations
from dynactor.actors.transfers.table_exports import TableExports
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.actors.transfers.transfer_buckets import TransferBuckets

PARTS: Final[tuple[type[Part], ...]] = (
    Publishing,
    TableHomes,
    Replays,
    StreamRegistry,
    SpaceReclaimer,
    Splitter,
    LogTrimmer,
    DestinationPhases,
    TimeToLivePhases,
    IndexPhases,
    ContributorInsightsSwitch,
    TableChanges,
    TableBackups,
    RecoverySwitch,
    TransferBuckets,
    TableImports,
    RestorePhases,
    TableDeletion,
    TableExports,
    BulkOperations,
)
