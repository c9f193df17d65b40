"""Rules for changes of tables by UpdateTable, applied in DynamoDB's order."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.definitions.table import (
    BillingMode,
    ChangeKind,
    TableClass,
    TableDefinition,
    Throughput,
)
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.limits import THROUGHPUT_DECREASES_PER_DAY
from dynactor.model.tables import (
    change_quotas,
    changes_in_progress,
    global_index_changes,
    global_index_phases,
    global_index_rules,
    policy_rules,
    schema_rules,
    stream_rules,
    tag_rules,
    throughput_rules,
)
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex
from dynactor.model.tables.policy_rules import PolicyChange
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_rules import after_update, checked_sse, settings_status

NOTHING_TO_UPDATE: Final = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
    "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)


class TableEdit(Struct, frozen=True):
    """A change of a table's settings; None marks an omitted member.

    Dictionaries (such as ``on_demand_throughput``) hold only the members that the request has.
    """

    billing_mode: BillingMode | None = None
    throughput: Throughput | None = None
    table_class: TableClass | None = None
    deletion_protection: bool | None = None
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    index_creates: tuple[NewGlobalIndex, ...] = ()
    index_updates: tuple[GlobalIndexUpdate, ...] = ()
    index_deletes: tuple[str, ...] = ()
    # Definitions for the keys of ``index_creates``; without effect on their own.
    attribute_definitions: tuple[KeyAttribute, ...] = ()
    stream: StreamChange | None = None
    tags_to_add: tuple[tuple[str, str], ...] | None = None
    tag_keys_to_remove: tuple[str, ...] | None = None
    policy: PolicyChange | None = None


def check_edit(edit: TableEdit) -> None:
    """Check the parts of an UpdateTable without its table; raises ``ValidationException``."""
    edit = _without_empty(edit)
    if replace(edit, attribute_definitions=()) == TableEdit():
        raise ValidationException(NOTHING_TO_UPDATE)
    if edit.billing_mode == "PROVISIONED" and edit.throughput is None:
        raise invalid_value(
            "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    throughput_rules.check_requested_mode(edit.billing_mode, edit.throughput)
    if edit.throughput is not None:
        throughput_rules.check_bounds(edit.throughput)
    global_index_rules.check_named_once(
        [
            *(index.name for index in edit.index_creates),
            *(update.name for update in edit.index_updates),
            *edit.index_deletes,
        ]
    )
    schema_rules.check_definitions_differ(edit.attribute_definitions)
    for index in edit.index_creates:
        if not edit.attribute_definitions:
            raise invalid_value(f"AttributeDefinitions is not specified for index: {index.name}")
    _check_combination(edit)
    if edit.stream is not None:
        stream_rules.check(edit.stream)


def _without_empty(edit: TableEdit) -> TableEdit:
    """The change without structures that have no members, which change nothing."""
    return replace(
        edit,
        on_demand_throughput=edit.on_demand_throughput or None,
        warm_throughput=edit.warm_throughput or None,
    )


# Changes that no other change may accompany, with the words of their error, in the order in which
# errors name them. The words of the first and the last are inferred from the others.
_ALONE: Final = (
    ("sse_specification", "SSE"),
    ("table_class", "TableClass"),
    ("deletion_protection", "DeletionProtection"),
    ("warm_throughput", "WarmThroughput"),
)


def _check_combination(edit: TableEdit) -> None:
    if edit.index_creates or edit.index_deletes:
        if edit.throughput is not None:
            raise invalid_value("You cannot create or delete index while updating table IOPS")
        if edit.stream is not None:
            raise invalid_value("You cannot create or delete index while changing stream status")
    if edit.throughput is not None and edit.stream is not None:
        raise invalid_value("You cannot modify stream status while updating table IOPS")
    others = replace(edit, attribute_definitions=())
    # The warm throughput of a table and of its indexes changes in one request.
    warms_alone = replace(
        others,
        index_updates=tuple(
            update
            for update in edit.index_updates
            if replace(update, warm_throughput=None) != GlobalIndexUpdate(update.name)
        ),
    )
    for member, words in _ALONE:
        given = warms_alone if member == "warm_throughput" else others
        if getattr(edit, member) is None:
            continue
        if replace(given, **{member: None}) != TableEdit():
            raise invalid_value(f"{words} modification must be the only operation in the request")


def apply_edit(
    definition: TableDefinition,
    edit: TableEdit,
    now_epoch_seconds: float,
    decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY,
) -> TableDefinition:
    """The definition after a change that passed ``check_edit``.

    Its status is the one to answer with: UPDATING for a class or billing mode that the table has
    already, too. ``after_edit`` gives the definition to store. Indexes with new throughput are
    UPDATING. A new index is CREATING, one to be deleted DELETING. New throughput is pending until
    ``after_update`` and ``global_index_changes.after_update``. Raises ``ValidationException``,
    ``ResourceNotFoundException`` for a missing index, or ``ResourceInUseException`` or
    ``LimitExceededException`` because of other changes.
    """
    if definition.status == "UPDATING" and not (definition.changing or definition.is_allocating):
        # An earlier version stored no kinds of changes. Its change ends with the next one.
        definition = after_update(definition)
    wanted = _kinds(definition, edit)
    global_index_phases.check_phases(
        definition, edit.index_creates, edit.index_updates, edit.index_deletes
    )
    changes_in_progress.check(definition, wanted)
    changed = _with_capacity(definition, edit, now_epoch_seconds, decreases_per_day)
    changed = global_index_changes.updated(
        changed, edit.index_updates, definition.billing_mode, now_epoch_seconds, decreases_per_day
    )
    for index in edit.index_creates:
        changed = global_index_changes.with_created(changed, index, edit.attribute_definitions)
    for name in edit.index_deletes:
        changed = global_index_changes.with_deleted(changed, name)
    changed = _with_settings(changed, edit, now_epoch_seconds)
    changing = tuple(kind for kind in _SETTINGS if kind in {*definition.changing, *wanted})
    changed = replace(changed, changing=changing)
    is_repeated = edit.billing_mode is not None or edit.table_class is not None
    changed = replace(changed, status="UPDATING" if is_repeated else settings_status(changed))
    return _with_labels(changed, edit, now_epoch_seconds)


def _with_settings(
    definition: TableDefinition, edit: TableEdit, now_epoch_seconds: float
) -> TableDefinition:
    """The definition with another stream, class or encryption."""
    if edit.stream is not None:
        stream = stream_rules.changed(definition.name, definition.stream, edit.stream)
        definition = replace(definition, stream=stream)
    if edit.table_class is not None and edit.table_class != (definition.table_class or "STANDARD"):
        definition = replace(
            definition,
            table_class=edit.table_class,
            table_class_changed_epoch_seconds=now_epoch_seconds,
            table_class_changes=change_quotas.TABLE_CLASS_CHANGE.with_change(
                definition.table_class_changes, now_epoch_seconds
            ),
        )
    if edit.sse_specification is not None:
        definition = replace(
            definition,
            sse_specification=checked_sse(edit.sse_specification),
            sse_changes=change_quotas.SSE_CHANGE.with_change(
                definition.sse_changes, now_epoch_seconds
            ),
        )
    return definition


def _with_labels(
    definition: TableDefinition, edit: TableEdit, now_epoch_seconds: float
) -> TableDefinition:
    """The definition with other protection, tags or policies, which change at once."""
    tags, policies = definition.tags, definition.policies
    if edit.deletion_protection is not None:
        definition = replace(definition, deletion_protection=edit.deletion_protection)
    if edit.tags_to_add is not None:
        tags = tag_rules.added(tags, edit.tags_to_add)
    if edit.tag_keys_to_remove is not None:
        tags = tag_rules.removed(tags, edit.tag_keys_to_remove)
    if edit.policy is not None:
        policies = policy_rules.changed(policies, edit.policy, now_epoch_seconds)
    return replace(definition, tags=tags, policies=policies)


# The changes that end with ``after_update``. Indexes in creation and updates of them have phases of
# their own.
_SETTINGS: Final[tuple[ChangeKind, ...]] = (
    "THROUGHPUT",
    "STREAM",
    "SSE",
    "TABLE_CLASS",
    "ON_DEMAND_THROUGHPUT",
    "WARM_THROUGHPUT",
    "INDEX_DELETION",
)


def _kinds(definition: TableDefinition, edit: TableEdit) -> set[ChangeKind]:
    """The kinds of changes in a request; a setting that the table has already is no change."""
    wanted: dict[ChangeKind, bool] = {
        "THROUGHPUT": edit.throughput is not None
        or edit.billing_mode not in (None, definition.billing_mode),
        "STREAM": edit.stream is not None,
        "SSE": edit.sse_specification is not None,
        "TABLE_CLASS": edit.table_class not in (None, definition.table_class or "STANDARD")
        or (edit.table_class is not None and "TABLE_CLASS" in definition.changing),
        "ON_DEMAND_THROUGHPUT": _differs(
            edit.on_demand_throughput, definition.on_demand_throughput
        ),
        "WARM_THROUGHPUT": _differs(
            edit.warm_throughput,
            definition.pending_warm_throughput
            or throughput_rules.shown_warm_throughput(definition),
        ),
        "INDEX_CREATION": bool(edit.index_creates),
        "INDEX_UPDATE": bool(edit.index_updates),
        "INDEX_DELETION": bool(edit.index_deletes),
    }
    return {kind for kind, is_wanted in wanted.items() if is_wanted}


def _differs(wanted: dict[str, Any] | None, current: dict[str, Any] | None) -> bool:
    present = current or {}
    return any(present.get(name) != value for name, value in (wanted or {}).items())


def _with_capacity(
    definition: TableDefinition, edit: TableEdit, now_epoch_seconds: float, decreases_per_day: int
) -> TableDefinition:
    billing_mode = edit.billing_mode or definition.billing_mode
    throughput = definition.throughput
    if edit.throughput is not None or billing_mode != definition.billing_mode:
        kept = throughput_rules.kept_warm(
            definition.billing_mode, throughput, definition.warm_throughput
        )
        definition = replace(definition, warm_throughput=kept)
    if edit.throughput is not None:
        throughput_rules.check_mode_of_table(billing_mode)
        throughput_rules.check_changes(definition.throughput, edit.throughput)
        throughput = throughput_rules.changed(
            definition.throughput, edit.throughput, now_epoch_seconds, decreases_per_day
        )
        # The example of UpdateTable in AWS's command line reference shows the new units immediately
        # if the table becomes provisioned.
        definition = (
            replace(
                definition,
                throughput=throughput_rules.with_pending_times(
                    definition.throughput, throughput, now_epoch_seconds
                ),
                pending_throughput=throughput,
            )
            if billing_mode == definition.billing_mode
            else replace(definition, throughput=throughput)
        )
    if billing_mode != definition.billing_mode:
        definition = (
            _on_demand(definition, now_epoch_seconds)
            if billing_mode == "PAY_PER_REQUEST"
            else replace(definition, billing_mode=billing_mode, on_demand_throughput=None)
        )
    if edit.on_demand_throughput:
        limits = throughput_rules.on_demand_limits(
            billing_mode, definition.on_demand_throughput, edit.on_demand_throughput
        )
        definition = replace(definition, on_demand_throughput=limits)
    if edit.warm_throughput:
        warm = throughput_rules.warm(
            billing_mode, throughput, definition.warm_throughput, edit.warm_throughput
        )
        definition = replace(definition, pending_warm_throughput=warm)
    return definition


def _on_demand(definition: TableDefinition, now_epoch_seconds: float) -> TableDefinition:
    """The switch to on-demand is not a decrease: time and count of decreases stay the same."""
    return replace(
        definition,
        billing_mode="PAY_PER_REQUEST",
        pending_on_demand_since_epoch_seconds=now_epoch_seconds,
        on_demand_switches=change_quotas.ON_DEMAND_SWITCH.with_change(
            definition.on_demand_switches, now_epoch_seconds
        ),
        throughput=replace(definition.throughput, read_units=0, write_units=0),
    )
