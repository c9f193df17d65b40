"""Random PartiQL statements, most of them valid, single and in batches."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from tests.differential.requests import values
from tests.differential.requests.request import Request, request
from tests.differential.requests.schemas import LocalIndex, Schema

Body = dict[str, Any]
Value = dict[str, Any]

COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
TYPE_WORDS = (
    "MISSING", "NULL", "BOOLEAN", "BLOB", "STRING", "NUMERIC", "STRUCT", "TUPLE", "LIST",
)  # fmt: skip
TYPES = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
# Attribute names that are keywords of PartiQL, and so need quotes.
QUOTED = frozenset({"size"})
_PARAMETER_SHARE = 0.35


class Statement:
    """Builds one statement, and collects its parameters in the order of the text."""

    def __init__(self, random: Random, schema: Schema, table: str) -> None:
        self.random = random
        self.schema = schema
        self.table = table
        self.parameters: list[Value] = []

    # Values and names.

    def value(self, content: Value) -> str:
        """A value as a literal, or as a parameter; call this in the order of the text."""
        if self.random.random() < _PARAMETER_SHARE or not _has_literal(content):
            self.parameters.append(content)
            return "?"
        return literal(content)

    def name(self, attribute: str) -> str:
        """A name, in double quotes if necessary and sometimes otherwise."""
        plain = attribute.isascii() and attribute.isalpha() and attribute not in QUOTED
        if plain and self.random.random() < 0.8:
            return attribute
        return f'"{attribute}"'

    def attribute(self) -> str:
        """The name of a random attribute."""
        if self.random.random() < 0.12:
            return self.random.choice(self.schema.key)[0]
        return self.random.choice(tuple(values.ATTRIBUTES))

    def path(self, attribute: str | None = None) -> str:
        """A document path."""
        random = self.random
        attribute = attribute or self.attribute()
        text = self.name(attribute)
        if attribute == "m" and random.random() < 0.6:
            text += self._member()
            if random.random() < 0.2:
                text += f"[{random.randint(0, 2)}]"
        elif attribute == "l" and random.random() < 0.6:
            text += f"[{random.randint(0, 4)}]"
            if random.random() < 0.2:
                text += self._member()
        elif random.random() < 0.05:
            text += random.choice((".x", "[0]", "[1].y", ".y[0]", "['x']"))
        return text

    def _member(self) -> str:
        member = self.random.choice(values.MEMBERS)
        return self.random.choice((f".{member}", f".{member}", f'."{member}"', f"['{member}']"))

    def operand_for(self, attribute: str) -> str:
        """A value whose type fits the attribute."""
        types = dict(self.schema.key)
        if attribute in types:
            return self.value(values.key_value(self.random, types[attribute]))
        return self.value(values.attribute(self.random, attribute))

    def source(self, index: LocalIndex | None = None) -> str:
        """The table, or one of its indexes."""
        table = f'"{self.table}"' if self.random.random() < 0.4 else self.table
        return table if index is None else f'{table}."{index.name}"'

    # Conditions.

    def condition(self, depth: int = 0) -> str:
        """The condition of a WHERE clause."""
        random = self.random
        choice = random.random()
        if depth < 3 and choice < 0.3:
            left = self._grouped(depth)
            return left + random.choice((" AND ", " OR ", " and ", " Or ")) + self._grouped(depth)
        if depth < 3 and choice < 0.37:
            return "NOT " + self._grouped(depth)
        return self.term(self.attribute())

    def _grouped(self, depth: int) -> str:
        text = self.condition(depth + 1)
        return f"({text})" if self.random.random() < 0.5 else text

    def term(self, attribute: str) -> str:
        """A condition on one attribute."""
        random = self.random
        match random.randint(0, 13):
            case 0 | 1 | 2 | 3 | 4:
                return self.comparison(attribute)
            case 5:
                path = self.path(attribute)
                low = self.operand_for(attribute)
                negated = random.choice(("", "", "NOT "))
                return f"{path} {negated}BETWEEN {low} AND {self.operand_for(attribute)}"
            case 6:
                return self.membership(attribute)
            case 7:
                return f"{self.path(attribute)} IS {random.choice(('', 'NOT '))}MISSING"
            case 8:
                word = random.choice(TYPE_WORDS)
                return f"{self.path(attribute)} IS {random.choice(('', '', 'NOT '))}{word}"
            case 9:
                path = self.path(attribute)
                return f"attribute_type({path}, {self.value({'S': random.choice(TYPES)})})"
            case 10:
                path = self.path(attribute)
                return f"begins_with({path}, {self._some(('S', 'S', 'S', 'B', 'N'))})"
            case 11:
                return f"contains({self.path(attribute)}, {self._some(('S', 'N', 'B', 'BOOL'))})"
            case 12:
                comparator = random.choice(COMPARATORS)
                number = self.value({"N": str(random.randint(0, 5))})
                word = random.choice(("size", "size", "SIZE"))
                return f"{word}({self.path(attribute)}) {comparator} {number}"
        function = random.choice(("attribute_exists", "attribute_not_exists"))
        return f"{function}({self.path(attribute)})"

    def _some(self, types: tuple[str, ...]) -> str:
        return self.value(values.value(self.random, self.random.choice(types)))

    def comparison(self, attribute: str) -> str:
        """A comparison, sometimes reversed, sometimes between two paths."""
        random = self.random
        comparator = random.choice(COMPARATORS)
        if random.random() < 0.15:
            operand = self.operand_for(attribute)
            return f"{operand} {comparator} {self.path(attribute)}"
        path = self.path(attribute)
        right = self.path() if random.random() < 0.07 else self.operand_for(attribute)
        space = random.choice((" ", " ", ""))
        return f"{path}{space}{comparator}{space}{right}"

    def membership(self, attribute: str) -> str:
        """An IN condition, with its list in brackets or in parentheses."""
        random = self.random
        path = self.path(attribute)
        choices = [self.operand_for(attribute) for _ in range(random.randint(1, 4))]
        opening, closing = random.choice(("[]", "()"))
        negated = random.choice(("", "", "NOT "))
        return f"{path} {negated}IN {opening}{', '.join(choices)}{closing}"

    def key_is(self, key: Value) -> str:
        """A condition that selects the item with this primary key."""
        terms = []
        for name, content in key.items():
            if self.random.random() < 0.1:
                operand = self.value(content)
                terms.append(f"{operand} = {self.name(name)}")
            else:
                terms.append(f"{self.name(name)} = {self.value(content)}")
        return " AND ".join(terms)

    def where_of_write(self) -> str:
        """The condition of a write: the primary key, and sometimes more."""
        random = self.random
        key = values.key(random, self.schema)
        text = self.key_is(key)
        if random.random() < 0.04:
            return self.term(self.schema.partition[0])
        if random.random() < 0.35:
            text += f" AND {self._grouped(1)}"
        return text

    # Statements.

    def select(self) -> str:
        """A SELECT of one item, of a range or of all."""
        random = self.random
        index = None
        if self.schema.indexes and random.random() < 0.4:
            index = random.choice(self.schema.indexes)
        columns = "*"
        if random.random() < 0.35:
            columns = ", ".join(self.path() for _ in range(random.randint(1, 3)))
        text = f"SELECT {columns} FROM {self.source(index)}"
        sort = self.schema.sort if index is None else index.sort
        where = self._where_of_read(sort)
        if where:
            text += f" {random.choice(('WHERE', 'where'))} {where}"
        if random.random() < 0.2:
            text += " ORDER BY " + self._order(sort)
        if random.random() < 0.05:
            text += ";"
        return text

    def select_one(self) -> str:
        """A SELECT of one item by its key, as in batches and transactions."""
        key = values.key(self.random, self.schema)
        columns = "*"
        if self.random.random() < 0.3:
            columns = ", ".join(self.path() for _ in range(self.random.randint(1, 3)))
        return f"SELECT {columns} FROM {self.source()} WHERE {self.key_is(key)}"

    def _where_of_read(self, sort: tuple[str, str] | None) -> str:
        random = self.random
        partition = self.schema.partition[0]
        terms = []
        choice = random.random()
        if choice < 0.1:
            return ""
        if choice < 0.6:
            terms.append(f"{self.name(partition)} = {self.operand_for(partition)}")
        elif choice < 0.7:
            terms.append(self.membership(partition))
        elif choice < 0.76:
            options = [self.comparison(partition) for _ in range(2)]
            terms.append(f"({' OR '.join(options)})")
        elif choice < 0.84:
            terms.append(self.term(partition))
        if sort is not None and random.random() < 0.5:
            terms.append(self._term_of(*sort))
        if random.random() < 0.3 or not terms:
            terms.append(self._grouped(1))
        return " AND ".join(terms)

    def _term_of(self, name: str, type_name: str) -> str:
        random = self.random
        low = values.key_value(random, type_name)
        high = values.key_value(random, type_name)
        path = self.name(name)
        choice = random.random()
        if choice < 0.2:
            first = self.value(low)
            return f"{path} BETWEEN {first} AND {self.value(high)}"
        if choice < 0.35:
            return f"begins_with({path}, {self.value(low)})"
        if choice < 0.45:
            first = self.value(low)
            return f"{path} IN [{first}, {self.value(high)}]"
        return f"{path} {random.choice(COMPARATORS)} {self.value(low)}"

    def _order(self, sort: tuple[str, str] | None) -> str:
        random = self.random
        names = [self.schema.partition[0], *((sort[0],) if sort else ())]
        if random.random() < 0.1:
            names.append("a")
        chosen = random.sample(names, random.randint(1, len(names)))
        return ", ".join(
            self.name(name) + random.choice(("", "", " ASC", " DESC", " desc")) for name in chosen
        )

    def insert(self) -> str:
        """An INSERT."""
        random = self.random
        item = values.item(random, self.schema)
        members = ", ".join(f"'{name}': {self.value(content)}" for name, content in item.items())
        return f"INSERT INTO {self.source()} VALUE {{{members}}}"

    def update(self) -> str:
        """An UPDATE, sometimes with several actions, or written as FROM … WHERE … SET."""
        if self.random.random() < 0.15:
            # Build the parts in the order of the text, because this is the order of the parameters.
            where = self.where_of_write()
            text = f"FROM {self.source()} WHERE {where} {self._clauses()}"
        else:
            clauses = self._clauses()
            text = f"UPDATE {self.source()} {clauses} WHERE {self.where_of_write()}"
        return text + self._returning(("ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"), 0.4)

    def _clauses(self) -> str:
        random = self.random
        clauses: list[str] = []
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if random.random() < 0.25:
                clauses.append(f"REMOVE {self.path(self._updated())}")
            else:
                actions = [self._assignment() for _ in range(random.choice((1, 1, 2)))]
                clauses.append(f"SET {', '.join(actions)}")
        return " ".join(clauses)

    def delete(self) -> str:
        """A DELETE."""
        text = f"DELETE FROM {self.source()} WHERE {self.where_of_write()}"
        return text + self._returning(("ALL OLD", "ALL OLD", "ALL OLD", "ALL NEW"), 0.4)

    def exists(self) -> str:
        """An EXISTS, which is only valid in transactions."""
        key = self.key_is(values.key(self.random, self.schema))
        return f"EXISTS(SELECT * FROM {self.source()} WHERE {key} AND {self._grouped(2)})"

    def _returning(self, allowed: tuple[str, ...], share: float) -> str:
        if self.random.random() >= share:
            return ""
        return f" RETURNING {self.random.choice(allowed)} *"

    def _updated(self) -> str:
        if self.random.random() < 0.03:
            return self.random.choice(self.schema.key)[0]
        return self.random.choice(tuple(values.ATTRIBUTES))

    def _assignment(self) -> str:
        random = self.random
        attribute = self._updated()
        if random.random() < 0.15:
            attribute = random.choice(("ss", "ns", "bs"))
            path = self.path(attribute)
            function = random.choice(("set_add", "set_delete", "SET_ADD"))
            return f"{path} = {function}({path}, {self.operand_for(attribute)})"
        path = self.path(attribute)
        choice = random.random()
        if choice < 0.5:
            return f"{path} = {self.operand_for(attribute)}"
        if choice < 0.65:
            left = self.path(random.choice(("n", "size", attribute)))
            number = self.value(values.value(random, "N"))
            return f"{path} = {left} {random.choice('+-')} {number}"
        if choice < 0.75:
            other = self.path(attribute)
            return f"{path} = if_not_exists({other}, {self.operand_for(attribute)})"
        if choice < 0.85:
            operands = ["l", self.value(values.value(random, "L"))]
            random.shuffle(operands)
            return f"{path} = list_append({', '.join(operands)})"
        return f"{path} = {self.path()}"


def _has_literal(content: Value) -> bool:
    ((type_name, held),) = content.items()
    match type_name:
        case "B" | "BS":
            return False
        case "N":
            return not held.startswith("+")
        case "NS":
            return not any(one.startswith("+") for one in held)
        case "L":
            return all(map(_has_literal, held))
        case "M":
            return all(map(_has_literal, held.values()))
    return True


def literal(content: Value) -> str:
    """An attribute value as a PartiQL literal."""
    ((type_name, held),) = content.items()
    match type_name:
        case "S":
            return quoted(held)
        case "N":
            return str(held)
        case "BOOL":
            return "true" if held else "false"
        case "NULL":
            return "null"
        case "SS":
            return f"<<{', '.join(map(quoted, held))}>>"
        case "NS":
            return f"<<{', '.join(held)}>>"
        case "L":
            return f"[{', '.join(map(literal, held))}]"
    return f"{{{', '.join(f'{quoted(name)}: {literal(one)}' for name, one in held.items())}}}"


def quoted(text: str) -> str:
    """A string in single quotes; single quotes within the string are doubled."""
    return "'" + text.replace("'", "''") + "'"


def statement(random: Random, schema: Schema, table: str, kinds: tuple[str, ...]) -> Body:
    """One statement of one of these kinds, with its parameters."""
    made = Statement(random, schema, table)
    text = getattr(made, random.choice(kinds))()
    body: Body = {"Statement": text}
    if made.parameters:
        body["Parameters"] = made.parameters
    return body


def execute_statement(random: Random, schema: Schema, table: str) -> Body:
    """An ExecuteStatement."""
    kinds = ("select", "select", "select", "select_one", "insert", "update", "update", "delete")
    body = statement(random, schema, table, kinds)
    if random.random() < 0.2:
        body["ConsistentRead"] = random.random() < 0.6
    if random.random() < 0.15:
        body["Limit"] = random.randint(1, 5)
    if random.random() < 0.3:
        body["ReturnConsumedCapacity"] = random.choice(("TOTAL", "INDEXES", "NONE"))
    if random.random() < 0.2:
        body["ReturnValuesOnConditionCheckFailure"] = random.choice(("ALL_OLD", "NONE"))
    return body


def batch_execute_statement(random: Random, schema: Schema, table: str) -> Body:
    """A BatchExecuteStatement with only reads or only writes, rarely both."""
    reads, writes = ("select_one", "select_one", "select"), ("insert", "update", "delete")
    kinds = random.choice((reads[:2], reads[:2], writes, writes, reads, reads + writes))
    statements = []
    for _ in range(random.randint(1, 4)):
        one = statement(random, schema, table, kinds)
        if random.random() < 0.2:
            one["ConsistentRead"] = random.random() < 0.6
        if random.random() < 0.2:
            one["ReturnValuesOnConditionCheckFailure"] = random.choice(("ALL_OLD", "NONE"))
        statements.append(one)
    body: Body = {"Statements": statements}
    if random.random() < 0.3:
        body["ReturnConsumedCapacity"] = random.choice(("TOTAL", "INDEXES", "NONE"))
    return body


def statement_request(random: Random, schema: Schema, table: str) -> Request:
    """A request with one statement or a batch; some statements have a fault."""
    if random.random() < 0.25:
        return request("BatchExecuteStatement", batch_execute_statement(random, schema, table))
    body = execute_statement(random, schema, table)
    if random.random() < 0.25:
        fault, body["Statement"] = broken(random, body["Statement"])
        body["Parameters"] = [*body.get("Parameters", ()), {"S": "a"}, {"N": "1"}]
        return request("ExecuteStatement", body, fault)
    return request("ExecuteStatement", body)


_TOKEN = re.compile(r"""\s+|'(?:[^']|'')*'|"[^"]*"|<<|>>|<>|<=|>=|\w+|.""", re.DOTALL)
_PUT_IN = (
    *("AND", "OR", "NOT", "IN", "IS", "MISSING", "BETWEEN", "SELECT", "WHERE", "SET", "VALUE"),
    *("*", "(", ")", "[", "]", "{", "}", "<<", ">>", ",", ".", "?", "=", "<", "+", "-", "||"),
    *("'x'", '"x"', "1", "-1", "1.5", ".5", "1e", "true", "null", "a", "p", "s", "@a", ":a", "#a"),
    *("size(a)", "foo(a)", "a.b", "a[0]", "a.*", "l[-1]", "l[1.0]", "m['x']", "m[x]", 'm["x"]'),
    *("LIKE 'a'", "AS x", "ORDER BY p", "LIMIT 1", "RETURNING ALL OLD *", "`a`", "date", "''"),
)


def broken(random: Random, text: str) -> tuple[str, str]:
    """A statement changed at one place, so it may be invalid, and a description of the change."""
    tokens = _TOKEN.findall(text)
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    at = random.choice(words)
    match random.randint(0, 4):
        case 0:
            told = f"without {tokens[at]}"
            tokens[at] = ""
        case 1:
            told = f"{tokens[at]} twice"
            tokens[at] += f" {tokens[at]}"
        case 2:
            told = f"{tokens[at]} in other letters"
            tokens[at] = tokens[at].swapcase()
        case 3:
            put_in = random.choice(_PUT_IN)
            told = f"{put_in} for {tokens[at]}"
            tokens[at] = put_in
        case _:
            put_in = random.choice(_PUT_IN)
            told = f"{put_in} put in"
            tokens.insert(at, f" {put_in} ")
    return told, "".join(tokens)
