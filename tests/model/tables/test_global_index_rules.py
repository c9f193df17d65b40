"""Global secondary indexes: the rules for definitions, and the changes each phase allows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import (
    DynamoDBError,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement, NewIndex
from dynactor.model.tables.table_edits import TableEdit, apply_edit, check_edit
from dynactor.model.tables.table_rules import NewTable, check_deletable, define, settled

INVALID = "One or more parameter values were invalid: "
ONLY_ONE = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per "
    "table"
)
IN_USE = "Attempt to change a resource which is still in use: Index is being"
NOW = 1_000_000_000.0


def key(text: str) -> tuple[KeyElement, ...]:
    """``"a b|c"`` has the partition attributes a and b and the sort attribute c."""
    partition, _, sort = text.partition("|")
    return tuple(
        [KeyElement(name, "HASH") for name in partition.split()]
        + [KeyElement(name, "RANGE") for name in sort.split()]
    )


def attributes(names: str) -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, "S") for name in names)


def index(name: str = "index", schema: str = "c", **members: Any) -> NewGlobalIndex:
    projection = members.pop("projection", "ALL")
    return NewGlobalIndex(name, key(schema), projection, **members)


def made(*indexes: NewGlobalIndex, defined: str = "abc", **members: Any) -> TableDefinition:
    good: dict[str, Any] = {
        "name": "table",
        "key_schema": key("a|b"),
        "attribute_definitions": attributes(defined),
        "global_indexes": indexes,
        "billing_mode": "PAY_PER_REQUEST",
    }
    return define(NewTable(**{**good, **members}))


def provisioned(*indexes: NewGlobalIndex, **members: Any) -> TableDefinition:
    return made(*indexes, billing_mode="PROVISIONED", throughput=Throughput(5, 5), **members)


def refused_definition(*indexes: NewGlobalIndex, **members: Any) -> str:
    with pytest.raises(ValidationException) as caught:
        made(*indexes, **members)
    return caught.value.message


def edited(definition: TableDefinition, **members: Any) -> TableDefinition:
    edit = TableEdit(**members)
    check_edit(edit)
    return apply_edit(definition, edit, NOW)


def refusal(definition: TableDefinition, **members: Any) -> tuple[type[DynamoDBError], str]:
    with pytest.raises(DynamoDBError) as caught:
        edited(definition, **members)
    return type(caught.value), caught.value.message


def in_state(definition: TableDefinition, name: str, **members: Any) -> TableDefinition:
    """The table ACTIVE, with an index in this state."""
    return replace(
        definition,
        status="ACTIVE",
        global_indexes=tuple(
            replace(each, **members) if each.definition.name == name else each
            for each in definition.global_indexes
        ),
    )


# -- definitions ------------------------------------------------------------------------------


def test_a_table_is_made_with_indexes_that_are_active():
    one = index("one", "c|a")
    definition = made(one, index("two", "b", projection="KEYS_ONLY"))
    assert definition.global_indexes == (
        GlobalIndex(
            IndexDefinition(
                1, "one", KeySchema((KeyAttribute("c", "S"),), attributes("a")), Projection("ALL")
            )
        ),
        GlobalIndex(IndexDefinition(2, "two", KeySchema(attributes("b")), Projection("KEYS_ONLY"))),
    )
    assert definition.next_index_id == 3


def test_global_indexes_are_numbered_after_local_ones():
    local = NewIndex("local", key("a|c"), "ALL")
    definition = made(index("global", "c"), local_indexes=(local,))
    assert [each.index_id for each in definition.indexes] == [1, 2]
    assert definition.next_index_id == 3


def test_a_key_has_up_to_four_attributes_of_each_kind():
    wide = index(schema="c d e f|g h i b")
    (global_index,) = made(wide, defined="abcdefghi").global_indexes
    assert global_index.definition.key_schema == KeySchema(attributes("cdef"), attributes("ghib"))
    assert refused_definition(index(schema="c d e f g"), defined="abcdefg") == (
        f"{INVALID}The KeySchema exceeds the maximum allowed number of HASH key attributes"
    )
    assert refused_definition(index(schema="c|d e f g h"), defined="abcdefgh") == (
        f"{INVALID}The KeySchema exceeds the maximum allowed number of RANGE key attributes"
    )


def test_partition_attributes_come_before_sort_attributes():
    mixed = NewGlobalIndex(
        "index", (KeyElement("a", "HASH"), KeyElement("b", "RANGE"), KeyElement("c", "HASH")), "ALL"
    )
    assert refused_definition(mixed) == (
        f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
    )
    assert refused_definition(index(schema="|c")) == (
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
    )


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ((), f"{INVALID}List of GlobalSecondaryIndexes is empty"),
        (
            (index(schema="x"),),
            (
                f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
                "Keys: [x], AttributeDefinitions: [a, b, c]"
            ),
        ),
        (
            (index(schema="c|c"),),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            (index(schema="c|a a"),),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        ((index(projection=None),), f"{INVALID}Unknown ProjectionType: null"),
        (
            (index(projection="INCLUDE"),),
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (
            (index(non_key_attributes=("x",)),),
            f"{INVALID}ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        ((index(), index()), f"{INVALID}Duplicate index name: index"),
        (
            (index(throughput=Throughput(1, 1)),),
            (
                f"{INVALID}ProvisionedThroughput should not be specified for index: index when "
                "BillingMode is PAY_PER_REQUEST"
            ),
        ),
        (
            tuple(index(f"index{number}") for number in range(21)),
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20",
        ),
        (
            (index(schema="b"),),
            (
                f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
                "[a, b, c], keys used: [a, b]"
            ),
        ),
        (
            (index(on_demand_throughput={"MaxReadRequestUnits": 0}),),
            (
                f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for index : index "
                "is outside of valid range"
            ),
        ),
        (
            (index(warm_throughput={"ReadUnitsPerSecond": 1}),),
            (
                f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index index is "
                "lower than initial throughput for OnDemand. See: https://docs.aws.amazon.com/"
                "amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
                "#on-demand-capacity-mode-initial"
            ),
        ),
    ],
)
def test_a_definition_is_refused(indexes: Any, message: str):
    assert refused_definition(*indexes) == message


def test_twenty_indexes_are_accepted():
    indexes = [index(f"index{number}") for number in range(20)]
    assert len(made(*indexes).global_indexes) == 20


def test_the_name_of_a_local_index_is_refused_for_a_global_index():
    local = NewIndex("index", key("a|c"), "ALL")
    assert refused_definition(index(), local_indexes=(local,)) == (
        f"{INVALID}Duplicate index name: index"
    )


@pytest.mark.parametrize("member", ["warm_throughput", "on_demand_throughput"])
def test_an_index_has_no_empty_throughput(member: str):
    nothing: dict[str, Any] = {member: {}}
    assert "is empty for index: index" in refused_definition(index(**nothing))
    change = (GlobalIndexUpdate("index", **nothing),)
    assert refusal(made(index()), index_updates=change)[0] is ValidationException


def test_at_most_100_attributes_are_projected_over_local_and_global_indexes():
    def projecting(count: int) -> TableDefinition:
        names = tuple(f"attribute{number}" for number in range(count))
        some = index(projection="INCLUDE", non_key_attributes=names)
        local = NewIndex("local", key("a|c"), "INCLUDE", ("x",))
        return made(some, local_indexes=(local,))

    assert projecting(99)
    with pytest.raises(ValidationException, match="101"):
        projecting(100)


def test_indexes_of_a_provisioned_table_need_throughput_of_their_own():
    definition = provisioned(index(throughput=Throughput(2, 3)))
    assert definition.global_indexes[0].throughput == Throughput(2, 3)
    for throughput, message in (
        (None, f"{INVALID}ProvisionedThroughput is not specified for index: index"),
        (
            Throughput(40_001, 1),
            (
                "The requested ReadCapacityUnits, 40001, is above the per table maximum for the "
                "account in us-east-1. Per table maximum: 40000"
            ),
        ),
        (
            Throughput(1, 10**12 + 1),
            "Given value 1000000000001 for WriteCapacityUnits is out of bounds for index index",
        ),
    ):
        with pytest.raises((ValidationException, LimitExceededException)) as caught:
            provisioned(index(throughput=throughput))
        assert caught.value.message == message
    with pytest.raises(LimitExceededException, match="ReadUnitsPerSecond, 40001"):
        made(index(warm_throughput={"ReadUnitsPerSecond": 40_001}))


# -- changes ----------------------------------------------------------------------------------

NO_INDEX = "Requested resource not found: Index nothing for table table"
TWO = provisioned(
    index("one", throughput=Throughput(1, 1)), index("two", "b", throughput=Throughput(1, 1))
)
ADDED = index("added", "d", throughput=Throughput(3, 3))
CREATE = {"index_creates": (ADDED,), "attribute_definitions": attributes("d")}
PHASE_1 = replace(edited(TWO, **CREATE), status="ACTIVE")
PHASE_2 = in_state(PHASE_1, "added", backfilling=True)


def update(name: str, read: int = 9, write: int = 9) -> dict[str, Any]:
    return {"index_updates": (GlobalIndexUpdate(name, Throughput(read, write)),)}


def status(definition: TableDefinition, name: str) -> tuple[str, bool | None]:
    found = definition.global_index(name)
    assert found is not None
    return found.status, found.backfilling


def test_an_added_index_is_creating_and_not_backfilling():
    changed = edited(TWO, **CREATE)
    assert changed.status == "UPDATING"
    assert status(changed, "added") == ("CREATING", False)
    added = changed.global_index("added")
    assert added is not None
    assert added.definition.index_id == 3
    assert changed.next_index_id == 4
    assert [each.name for each in changed.attribute_definitions] == ["a", "b", "c", "d"]


def test_definitions_that_no_key_uses_are_dropped():
    changed = edited(TWO, index_creates=(ADDED,), attribute_definitions=attributes("adxy"))
    assert [each.name for each in changed.attribute_definitions] == ["a", "b", "c", "d"]


def test_the_request_defines_the_keys_of_an_added_index():
    assert refusal(TWO, index_creates=(ADDED,), attribute_definitions=attributes("a")) == (
        ValidationException,
        (
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [d], AttributeDefinitions: [a]"
        ),
    )
    assert refusal(TWO, index_creates=(ADDED,)) == (
        ValidationException,
        f"{INVALID}AttributeDefinitions is not specified for index: added",
    )


def test_an_index_does_not_redefine_an_attribute():
    redefined = (KeyAttribute("c", "N"), KeyAttribute("d", "S"))
    changed = edited(TWO, index_creates=(ADDED,), attribute_definitions=redefined)
    assert changed.attribute_definitions == attributes("abcd")
    by_c = index("added", "d|c", throughput=Throughput(3, 3))
    assert refusal(TWO, index_creates=(by_c,), attribute_definitions=redefined) == (
        ValidationException,
        (
            f"{INVALID}Attributes cannot be redefined. Please check that your attribute has the "
            "same type as previously defined. Existing schema: Schema:[SchemaElement: "
            "key{c:S:HASH}] New schema: Schema:[SchemaElement: key{d:S:HASH}, SchemaElement: "
            "key{c:N:RANGE}]"
        ),
    )


def test_an_attribute_is_defined_once_in_a_request():
    twice = attributes("dd")
    assert refusal(TWO, index_creates=(ADDED,), attribute_definitions=twice) == (
        ValidationException,
        "Attribute Name is duplicated: d",
    )


def test_an_id_is_never_used_again():
    gone = edited(TWO, index_deletes=("two",))
    gone = replace(gone, status="ACTIVE", global_indexes=gone.global_indexes[:1])
    added = edited(gone, **CREATE).global_index("added")
    assert added is not None
    assert added.definition.index_id == 3


def test_a_deleted_index_takes_its_definitions_with_it():
    changed = edited(TWO, index_deletes=("one",))
    assert status(changed, "one") == ("DELETING", None)
    assert [each.name for each in changed.attribute_definitions] == ["a", "b"]


@pytest.mark.parametrize(
    ("members", "error"),
    [
        (
            {
                "index_creates": (ADDED, index("other", "d", throughput=Throughput(1, 1))),
                "attribute_definitions": attributes("d"),
            },
            (LimitExceededException, ONLY_ONE),
        ),
        ({**CREATE, "index_deletes": ("one",)}, (LimitExceededException, ONLY_ONE)),
        ({"index_deletes": ("one", "two")}, (LimitExceededException, ONLY_ONE)),
        (
            {"index_deletes": ("nothing",)},
            (ResourceNotFoundException, NO_INDEX),
        ),
        (update("nothing"), (ResourceNotFoundException, NO_INDEX)),
        (
            {**update("one"), "index_deletes": ("one",)},
            (
                ValidationException,
                (
                    f"{INVALID}Only one global secondary index update per index is allowed "
                    "simultaneously. Index: one"
                ),
            ),
        ),
        (
            {
                "index_creates": (index("one", throughput=Throughput(1, 1)),),
                "attribute_definitions": attributes("c"),
            },
            (ValidationException, "Attempting to create an index which already exists"),
        ),
        (
            {"index_creates": (index("added", "d"),), "attribute_definitions": attributes("d")},
            (
                ValidationException,
                f"{INVALID}ProvisionedThroughput must be specified for index: added",
            ),
        ),
        (
            {"index_updates": (GlobalIndexUpdate("one"),)},
            (
                ValidationException,
                (
                    f"{INVALID}One of ProvisionedThroughput, OnDemandThroughput, WarmThroughput "
                    "must be specified for index: one"
                ),
            ),
        ),
    ],
)
def test_a_change_is_refused(members: Any, error: Any):
    assert refusal(TWO, **members) == error


def test_a_twenty_first_index_is_refused():
    full = made(*(index(f"index{number}") for number in range(20)))
    error, message = refusal(full, index_creates=(index(),), attribute_definitions=attributes("c"))
    assert error is LimitExceededException
    assert message == (
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit "
        "of 20"
    )


def read_units_of(thing: TableDefinition | GlobalIndex) -> int:
    return thing.throughput.read_units


def test_throughput_of_the_table_and_of_any_number_of_indexes_changes_in_one_call():
    changed = edited(
        TWO,
        throughput=Throughput(7, 7),
        index_updates=(
            GlobalIndexUpdate("one", Throughput(2, 1)),
            GlobalIndexUpdate("two", Throughput(1, 4)),
        ),
    )
    assert read_units_of(changed) == read_units_of(TWO)
    one, two = changed.global_indexes
    assert (read_units_of(one), read_units_of(two)) == (1, 1)
    assert (one.status, two.status) == ("UPDATING", "UPDATING")
    changed = settled(changed)
    assert changed.throughput.read_units == 7
    one, two = changed.global_indexes
    assert one.throughput == Throughput(2, 1, NOW)
    assert two.throughput == Throughput(1, 4, NOW)
    assert (one.status, two.status) == ("ACTIVE", "ACTIVE")


def test_a_table_stays_active_while_only_its_indexes_throughput_changes():
    changed = edited(TWO, **update("one"))
    assert (changed.status, status(changed, "one")) == ("ACTIVE", ("UPDATING", None))


UNITS = (
    "Attempt to change a resource which is still in use: Can't change table IOPS when an index is "
    "being"
)


def test_a_table_is_not_updated_while_an_index_is_updated():
    changed = edited(TWO, **update("one"))
    for members in ({"billing_mode": "PAY_PER_REQUEST"}, {"throughput": Throughput(7, 7)}):
        assert refusal(changed, **members) == (
            ResourceInUseException,
            f"{UNITS} updated. Table: table Indexes: [one]",
        )


def test_the_same_throughput_again_is_refused():
    error, message = refusal(TWO, **update("one", 1, 1))
    assert error is ValidationException
    assert message.startswith(
        "The provisioned throughput for the index one will not change. The requested value equals "
        "the current value. Current ReadCapacityUnits provisioned for index one: 1."
    )


def test_a_change_of_the_tables_billing_mode_changes_its_indexes():
    on_demand = edited(TWO, billing_mode="PAY_PER_REQUEST")
    assert [each.throughput.read_units for each in on_demand.global_indexes] == [0, 0]
    assert status(on_demand, "one") == ("UPDATING", None)
    over = settled(on_demand)
    back = {"billing_mode": "PROVISIONED", "throughput": Throughput(5, 5)}
    assert refusal(over, **back) == (
        ValidationException,
        f"{INVALID}ProvisionedThroughput must be specified for index: one,two",
    )
    assert refusal(over, **back, **update("two")) == (
        ValidationException,
        f"{INVALID}ProvisionedThroughput must be specified for index: one",
    )
    both = (*update("one")["index_updates"], *update("two")["index_updates"])
    changed = edited(over, **back, index_updates=both)
    assert [each.throughput.read_units for each in changed.global_indexes] == [9, 9]


def test_an_index_of_an_on_demand_table_has_no_provisioned_throughput():
    message = (
        f"{INVALID}ProvisionedThroughput should not be specified for index: index when "
        "BillingMode is PAY_PER_REQUEST"
    )
    assert refusal(made(index()), **update("index")) == (ValidationException, message)


def test_on_demand_maxima_of_an_index_end_with_the_mode():
    limited = edited(
        made(index()),
        index_updates=(
            GlobalIndexUpdate("index", on_demand_throughput={"MaxReadRequestUnits": 5}),
        ),
    )
    over = settled(limited)
    assert over.global_indexes[0].on_demand_throughput == {"MaxReadRequestUnits": 5}
    back = edited(over, billing_mode="PROVISIONED", throughput=Throughput(1, 1), **update("index"))
    assert back.global_indexes[0].on_demand_throughput is None


# -- phases -----------------------------------------------------------------------------------

NOT_BACKFILLING = f"{UNITS} created. Table: table Indexes: [added]"
OTHER = {
    "index_creates": (index("other", "d", throughput=Throughput(1, 1)),),
    "attribute_definitions": attributes("d"),
}


@pytest.mark.parametrize("table_status", ["UPDATING", "ACTIVE"])
@pytest.mark.parametrize(
    ("members", "error"),
    [
        (
            {"index_deletes": ("added",)},
            (
                ResourceInUseException,
                (
                    "Attempt to change a resource which is still in use: Index creation is in "
                    "resource allocation phase. Retry deletion during backfilling phase or when "
                    "the index is active. Table: table Index: added"
                ),
            ),
        ),
        (
            update("added"),
            (ResourceInUseException, f"{IN_USE} created but not backfilling."),
        ),
        ({"throughput": Throughput(8, 8)}, (ResourceInUseException, NOT_BACKFILLING)),
        ({"billing_mode": "PAY_PER_REQUEST"}, (ResourceInUseException, NOT_BACKFILLING)),
        (OTHER, (LimitExceededException, ONLY_ONE)),
        ({"index_deletes": ("one",)}, (LimitExceededException, ONLY_ONE)),
    ],
)
def test_phase_1_of_an_index_refuses_other_changes_of_indexes_and_billing(
    table_status: Any, members: Any, error: Any
):
    definition = replace(PHASE_1, status=table_status)
    assert refusal(definition, **members) == error


@pytest.mark.parametrize("table_status", ["UPDATING", "ACTIVE"])
def test_phase_1_lets_the_throughput_of_other_indexes_change(table_status: Any):
    changed = edited(replace(PHASE_1, status=table_status), **update("one"))
    assert status(changed, "one") == ("UPDATING", None)
    assert status(changed, "added") == ("CREATING", False)


def test_a_table_with_an_index_in_phase_1_takes_other_changes():
    definition = replace(PHASE_1, status="UPDATING")
    changed = edited(definition, deletion_protection=True)
    assert (changed.deletion_protection, changed.status) == (True, "UPDATING")
    assert edited(definition, tags_to_add=(("a", "1"),)).tags == (("a", "1"),)


@pytest.mark.parametrize("definition", [PHASE_1, PHASE_2])
def test_a_table_is_not_deleted_while_an_index_is_added(definition: TableDefinition):
    assert deletion_refused(definition) == CHANGING_INDEXES


CHANGING_INDEXES = (
    "Attempt to change a resource which is still in use: Cannot delete table while indexes are "
    "being created, updated, or deleted."
)


def deletion_refused(definition: TableDefinition) -> str:
    with pytest.raises(ResourceInUseException) as caught:
        check_deletable(definition)
    return caught.value.message


@pytest.mark.parametrize(
    "members", [OTHER, {"index_deletes": ("one",)}, {"index_deletes": ("two",)}]
)
def test_phase_2_refuses_to_add_or_delete_other_indexes(members: Any):
    assert refusal(PHASE_2, **members) == (LimitExceededException, ONLY_ONE)


def test_phase_2_lets_the_index_be_deleted_and_all_throughput_change():
    deleted = edited(PHASE_2, index_deletes=("added",))
    assert status(deleted, "added") == ("DELETING", None)
    assert settled(edited(PHASE_2, throughput=Throughput(8, 8))).throughput.read_units == 8
    assert status(edited(PHASE_2, **update("one")), "one") == ("UPDATING", None)
    changed = edited(PHASE_2, **update("added"))
    assert status(changed, "added") == ("UPDATING", True)


def test_an_index_whose_throughput_changes_is_in_use():
    updating = in_state(TWO, "one", status="UPDATING")
    assert refusal(updating, **update("one")) == (ResourceInUseException, f"{IN_USE} updated.")
    assert refusal(updating, index_deletes=("one",)) == (
        ResourceInUseException,
        f"{IN_USE} updated.",
    )


def test_the_throughput_of_other_indexes_changes_while_an_index_is_deleted():
    deleting = edited(TWO, index_deletes=("one",))
    again = index("one", "d", throughput=Throughput(3, 3))
    assert refusal(deleting, index_creates=(again,), attribute_definitions=attributes("d")) == (
        ResourceInUseException,
        f"{IN_USE} deleted. Table: table Index: one",
    )
    assert status(edited(deleting, **update("two")), "two") == ("UPDATING", None)
    assert refusal(deleting, **update("one")) == (ResourceInUseException, f"{IN_USE} deleted.")
    assert refusal(deleting, index_deletes=("one",)) == (
        ResourceInUseException,
        f"{IN_USE} deleted.",
    )
    assert refusal(deleting, **CREATE) == (LimitExceededException, ONLY_ONE)
    assert refusal(deleting, throughput=Throughput(8, 8)) == (
        ResourceInUseException,
        f"{UNITS} deleted. Table: table Indexes: [one]",
    )
    assert deletion_refused(deleting) == CHANGING_INDEXES
    assert deletion_refused(edited(TWO, **update("one"))) == CHANGING_INDEXES
    check_deletable(settled(edited(TWO, **update("one"))))


def test_a_local_index_is_no_global_one():
    local = NewIndex("local", key("a|c"), "ALL")
    definition = made(index(), local_indexes=(local,))
    assert refusal(definition, index_deletes=("local",)) == (
        ValidationException,
        "Cannot delete an index that is not a GlobalSecondaryIndex",
    )
    assert refusal(definition, **update("local"))[0] is ResourceNotFoundException
    taken = {"index_creates": (index("local"),), "attribute_definitions": attributes("c")}
    assert refusal(definition, **taken) == (
        ValidationException,
        "Attempting to create an index which already exists",
    )
