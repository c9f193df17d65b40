"""Rules for each member of the API's model that is a statement."""

from __future__ import annotations

from typing import Final

from tests.guards.rules import Broken, Reason, Rule, given, named
from tests.guards.sites import Site
from tests.guards.valid_requests import (
    COMPOSITE_INDEX,
    GLOBAL_INDEX,
    TABLE,
    WHERE,
    WHERE_HELD,
    base,
)

_FROM: Final = f'FROM "{TABLE}"'
_INTO: Final = f'INTO "{TABLE}" VALUE'


def _statement(name: str, message: str, text: str, *more: str) -> Rule:
    """Make a rule that these statements break."""

    def broken(site: Site, member: str) -> Broken:
        return given(
            {
                f"{number}" if number else "": base(site) | {member: statement}
                for number, statement in enumerate((text, *more))
            }
        )

    return Rule(f"statements: {name}", message, named("Statement"), broken)


def _select(name: str, message: str, text: str) -> Rule:
    """Make a rule that this SELECT breaks; it reads several items."""

    def broken(site: Site, member: str) -> Broken:
        if not site.is_whole:
            return Reason.ONE_ITEM
        return {"": lambda: base(site) | {member: text}}

    return Rule(f"statements: {name}", message, named("Statement"), broken)


STATEMENT_RULES: Final = (
    _statement("a form", "Statement wasn't well formed|Unsupported operation", "SLECT"),
    _statement(
        "no writes to indexes",
        "not supported on an index",
        f'UPDATE "{TABLE}"."{GLOBAL_INDEX}" SET v = 1 {WHERE}',
        f'DELETE {_FROM}."{GLOBAL_INDEX}" {WHERE}',
    ),
    _statement("names of tables", "Table name should be within", f'SELECT * FROM "ab" {WHERE}'),
    _statement(
        "the number of operators",
        "too many operators|nested|operators",
        f"SELECT * {_FROM} {WHERE} AND {' AND '.join(['v = 1'] * 400)}",
    ),
    _statement("names", "cannot be an empty string", f'SELECT "" {_FROM} {WHERE}'),
    _statement(
        "types of keys",
        "Key attribute's data type|schema type|does not match the schema|Type mismatch for key",
        f"SELECT * {_FROM} WHERE pk = 'a' AND sk = 1",
        f"UPDATE \"{TABLE}\" SET v = 1 WHERE pk = 'a' AND sk = 1",
        f"DELETE {_FROM} WHERE pk = 'a' AND sk = 1",
        f"INSERT {_INTO} {{'pk': 'a', 'sk': 1}}",
    ),
    _statement("distinct operands", "must be distinct", f"SELECT * {_FROM} {WHERE} AND v = v"),
    _statement(
        "scalar keys",
        "Key attributes must be scalars",
        f'UPDATE "{TABLE}" SET v = 1 {WHERE} AND g.v = 1',
        f"DELETE {_FROM} {WHERE} AND g.v = 1",
    ),
    _statement(
        "ways into documents",
        "document path provided in the update expression is invalid",
        f'UPDATE "{TABLE}" SET gone.w = 1 {WHERE_HELD}',
    ),
    _statement(
        "values of keys", "empty string value", f"SELECT * {_FROM} WHERE pk = '' AND sk = 'b'"
    ),
    _statement(
        "the length of chains",
        "operators",
        f"SELECT * {_FROM} {WHERE} AND v = {' + '.join(['1'] * 60)}",
    ),
    _statement(
        "no writes within",
        "only expected at the top level",
        f"SELECT * {_FROM} WHERE pk = 'a' AND (DELETE {_FROM})",
    ),
    _statement(
        "indexes of one partition attribute",
        "multi-attribute HASH keys|Reads on indices are not supported",
        f"SELECT * {_FROM}.\"{COMPOSITE_INDEX}\" WHERE g = 'a' AND x = 'b'",
    ),
    _statement(
        "parameters", "Number of parameters|parameters", f"SELECT * {_FROM} {WHERE} AND v = ?"
    ),
)

# Only for ExecuteStatement, because a SELECT in a batch or transaction must read one item.
SELECT_RULES: Final = (
    _select("scalar keys of a SELECT", "must be scalars", f"SELECT * {_FROM} {WHERE} AND g.v = 1"),
    _select("an order needs a condition", "Must have WHERE", f"SELECT * {_FROM} ORDER BY pk"),
    _select(
        "an order needs the key",
        "hash key condition",
        f"SELECT * {_FROM} WHERE v = 1 ORDER BY pk",
    ),
    _select(
        "an order of keys",
        "must be part of the primary key",
        f"SELECT * {_FROM} WHERE pk = 'a' ORDER BY v",
    ),
    _select("types of keys in filters", "schema type", f"SELECT * {_FROM} WHERE NOT sk = 1"),
)
