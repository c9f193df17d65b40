"""PartiQL statements as written, before tables and parameters are known.

Expressions keep their first token or that of their operator, because DynamoDB's messages show
positions. Syntax that DynamoDB does not support is included if it has a message of its own.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from typing import Literal as OneOf

from msgspec import Struct

from dynactor.model.partiql.tokens import StatementToken, StatementTokenKind
from dynactor.model.values.attribute_value import AttributeValue

_AGGREGATES: Final = frozenset({"avg", "count", "max", "min", "sum"})


def is_aggregate(function: StatementToken) -> bool:
    """Whether a function aggregates many items."""
    return function.kind is StatementTokenKind.KEYWORD and function.text in _AGGREGATES


class Literal(Struct, frozen=True):
    """A string, number, boolean or null, as an attribute value; a number as written."""

    value: AttributeValue
    token: StatementToken


class Missing(Struct, frozen=True):
    """``MISSING``."""

    token: StatementToken


class Ion(Struct, frozen=True):
    """A literal of Amazon Ion, which DynamoDB refuses."""

    token: StatementToken


class NegativeZero(Struct, frozen=True):
    """``-0.0``, which DynamoDB refuses, unlike ``-0``."""

    token: StatementToken


class Parameter(Struct, frozen=True):
    """``?``: the value of the request's parameter at this position."""

    position: int
    token: StatementToken


class VariableNode(Struct, frozen=True):
    """A name by itself."""

    name: str
    token: StatementToken


class Star(Struct, frozen=True):
    """``*`` as a step of a path, ``.*`` or ``[*]``, or as an argument."""

    token: StatementToken
    in_brackets: bool = False


class Path(Struct, frozen=True):
    """A name and the steps after it: names (as string literals), positions, other expressions."""

    root: Expression
    steps: tuple[Expression, ...]
    token: StatementToken


class CallNode(Struct, frozen=True):
    """A call of a function; the names of PartiQL's own functions are in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    token: StatementToken

    @property
    def is_aggregate(self) -> bool:
        """Whether the function aggregates many items."""
        return is_aggregate(self.token)


class Sequence(Struct, frozen=True):
    """``[a, b]`` or ``(a, b)``, and the bag ``<<a, b>>``."""

    elements: tuple[Expression, ...]
    token: StatementToken
    is_bag: bool = False


class Tuple(Struct, frozen=True):
    """``{'name': value}``."""

    members: tuple[tuple[Expression, Expression], ...]
    token: StatementToken


class TypeName(Struct, frozen=True):
    """The right side of IS."""

    name: str
    token: StatementToken


class OperationNode(Struct, frozen=True):
    """An operator, in lower case, and its operands; AND and OR take any number."""

    operator: str
    operands: tuple[Expression, ...]
    token: StatementToken


class Subquery(Struct, frozen=True):
    """A SELECT in place of a value."""

    select: SelectNode
    token: StatementToken


class Symbol(Struct, frozen=True):
    """A bare word as a function's argument, such as YEAR in ``EXTRACT(YEAR FROM a)``."""

    token: StatementToken


class Unsupported(Struct, frozen=True):
    """Syntax that DynamoDB never supports, such as CASE.

    ``kind`` is its name in messages as a statement, ``shown`` as an operand.
    """

    kind: str
    shown: str
    token: StatementToken


class Nested(Struct, frozen=True):
    """A write that was parsed as an expression; it is allowed only as a whole statement."""

    write: InsertNode | UpdateNode | DeleteNode
    token: StatementToken


Expression: TypeAlias = (
    Literal
    | Missing
    | Ion
    | NegativeZero
    | Parameter
    | VariableNode
    | Star
    | Path
    | CallNode
    | Sequence
    | Tuple
    | TypeName
    | OperationNode
    | Subquery
    | Symbol
    | Unsupported
    | Nested
)


class Source(Struct, frozen=True):
    """The operand of FROM, INTO or UPDATE."""

    expression: Expression
    has_alias: bool = False
    unpivots: bool = False


class SortTerm(Struct, frozen=True):
    """One term of ORDER BY."""

    expression: Expression
    is_descending: bool = False


class SelectNode(Struct, frozen=True):
    """``SELECT``; ``columns`` None is ``*``. ``unsupported``: messages for unsupported clauses."""

    columns: tuple[Expression, ...] | None
    sources: tuple[Source, ...]
    where: Expression | None = None
    order: tuple[SortTerm, ...] = ()
    has_alias: bool = False
    unsupported: tuple[str, ...] = ()


class InsertNode(Struct, frozen=True):
    """``INSERT INTO table VALUE item``."""

    table: Expression
    value: Expression
    if_not_exists: bool = False
    unsupported: tuple[str, ...] = ()


class Assignment(Struct, frozen=True):
    """``SET path = value``."""

    path: Expression
    value: Expression


class Removal(Struct, frozen=True):
    """``REMOVE path``."""

    path: Expression


Extent: TypeAlias = OneOf["all", "modified"]
Image: TypeAlias = OneOf["old", "new"]


class Returning(Struct, frozen=True):
    """``RETURNING ALL OLD *`` and similar."""

    extent: Extent
    image: Image
    has_star: bool = True


class UpdateNode(Struct, frozen=True):
    """``UPDATE table SET … WHERE …``, or its other form ``FROM table WHERE … SET …``.

    ``unsupported`` is the message for an operation other than SET and REMOVE.
    """

    sources: tuple[Source, ...]
    actions: tuple[Assignment | Removal, ...]
    where: Expression | None = None
    returning: tuple[Returning, ...] = ()
    unsupported: str | None = None


class DeleteNode(Struct, frozen=True):
    """``DELETE FROM table WHERE … RETURNING …``."""

    source: Source
    where: Expression | None = None
    returning: tuple[Returning, ...] = ()


class ExistsNode(Struct, frozen=True):
    """``EXISTS(SELECT …)``, a statement of transactions."""

    select: SelectNode


Statement: TypeAlias = SelectNode | InsertNode | UpdateNode | DeleteNode | ExistsNode
