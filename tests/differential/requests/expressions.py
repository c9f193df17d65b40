"""Random expressions with their placeholders, most of them valid."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.requests import values
from tests.differential.requests.schemas import Schema

COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
TYPES = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
RESERVED = frozenset({"size", "u"}) - {"u"}
PLAIN = tuple(name for name in values.ATTRIBUTES if name.isascii() and name.isalpha())


class Expressions:
    """The expressions of one request, which share placeholders for names and values."""

    def __init__(self, random: Random, schema: Schema) -> None:
        self.random = random
        self.schema = schema
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def add_to(self, body: dict[str, Any]) -> None:
        """Add the placeholders to the request."""
        if self.names:
            body["ExpressionAttributeNames"] = self.names
        if self.values:
            body["ExpressionAttributeValues"] = self.values

    def name(self, attribute: str) -> str:
        """The attribute's name, or a placeholder for it."""
        plain = attribute in PLAIN and attribute != "size"
        if plain and self.random.random() < 0.75:
            return attribute
        if attribute == "size" and self.random.random() < 0.05:
            # ``size`` is a reserved word, so the request is invalid.
            return attribute
        for placeholder, name in self.names.items():
            if name == attribute:
                return placeholder
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = attribute
        return placeholder

    def value(self, content: dict[str, Any]) -> str:
        """A placeholder for a value."""
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = content
        return placeholder

    def attribute(self) -> str:
        """The name of a random attribute."""
        if self.random.random() < 0.1:
            return self.random.choice(self.schema.key)[0]
        return self.random.choice(tuple(values.ATTRIBUTES))

    def path(self, attribute: str | None = None) -> str:
        """A random document path."""
        attribute = attribute or self.attribute()
        text = self.name(attribute)
        random = self.random
        if attribute == "m" and random.random() < 0.6:
            text += "." + self._member()
            if random.random() < 0.2:
                text += f"[{random.randint(0, 2)}]"
        elif attribute == "l" and random.random() < 0.6:
            text += f"[{random.randint(0, 3)}]"
            if random.random() < 0.2:
                text += "." + self._member()
        elif random.random() < 0.05:
            text += random.choice((".x", "[0]", "[1].y", ".y[0]"))
        return text

    def _member(self) -> str:
        member = self.random.choice(values.MEMBERS)
        if self.random.random() < 0.8:
            return member
        placeholder = f"#m{member}"
        self.names[placeholder] = member
        return placeholder

    def operand_for(self, attribute: str) -> str:
        """A value whose type fits the attribute."""
        types = dict(self.schema.key)
        if attribute in types:
            return self.value(values.key_value(self.random, types[attribute]))
        return self.value(values.attribute(self.random, attribute))

    # Conditions.

    def condition(self, depth: int = 0, *, exclude: frozenset[str] = frozenset()) -> str:
        """A condition or filter."""
        random = self.random
        choice = random.random()
        if depth < 3 and choice < 0.3:
            operator = random.choice((" AND ", " OR ", " and ", " oR "))
            left = self._grouped(depth, exclude)
            return left + operator + self._grouped(depth, exclude)
        if depth < 3 and choice < 0.37:
            return "NOT " + self._grouped(depth, exclude)
        attribute = self.attribute()
        while attribute in exclude:
            attribute = self.attribute()
        path = self.path(attribute)
        match random.randint(0, 11):
            case 0 | 1 | 2 | 3:
                comparator = random.choice(COMPARATORS)
                left, right = path, self.operand_for(attribute)
                if random.random() < 0.2:
                    left, right = right, left
                if random.random() < 0.1:
                    right = self.path(self._other(exclude))
                space = random.choice((" ", "", "  "))
                return f"{left}{space}{comparator}{space}{right}"
            case 4:
                low, high = self.operand_for(attribute), self.operand_for(attribute)
                return f"{path} BETWEEN {low} AND {high}"
            case 5:
                operands = [self.operand_for(attribute) for _ in range(random.randint(1, 4))]
                return f"{path} IN ({', '.join(operands)})"
            case 6:
                return f"attribute_exists({path})"
            case 7:
                return f"attribute_not_exists({path})"
            case 8:
                return f"attribute_type({path}, {self.value({'S': random.choice(TYPES)})})"
            case 9:
                return (
                    f"begins_with({path}, {self.value(values.value(random, random.choice('SSB')))})"
                )
            case 10:
                return f"contains({path}, {self.value(values.value(random, random.choice('SNB')))})"
        comparator = random.choice(COMPARATORS)
        number = self.value({"N": str(random.randint(0, 5))})
        return f"size({path}) {comparator} {number}"

    def _other(self, exclude: frozenset[str]) -> str:
        return self.random.choice([name for name in values.ATTRIBUTES if name not in exclude])

    def _grouped(self, depth: int, exclude: frozenset[str]) -> str:
        text = self.condition(depth + 1, exclude=exclude)
        if " " in text and self.random.random() < 0.7:
            return f"({text})"
        return text

    def key_condition(self, partition: tuple[str, str], sort: tuple[str, str] | None) -> str:
        """A KeyConditionExpression on a table's or an index's key."""
        random = self.random
        partition_value = self.value(values.key_value(random, partition[1]))
        conditions = [f"{self.name(partition[0])} = {partition_value}"]
        if random.random() < 0.1:
            conditions = [f"{partition_value} = {self.name(partition[0])}"]
        if sort is not None and random.random() < 0.6:
            conditions.append(self._sort_condition(*sort))
            if random.random() < 0.2:
                conditions.reverse()
        if random.random() < 0.1:
            conditions = [f"({condition})" for condition in conditions]
        return random.choice((" AND ", " and ")).join(conditions)

    def _sort_condition(self, name: str, type_name: str) -> str:
        random = self.random
        path = self.name(name)
        operand = self.value(values.key_value(random, type_name))
        choice = random.random()
        if choice < 0.2:
            high = self.value(values.key_value(random, type_name))
            return f"{path} BETWEEN {operand} AND {high}"
        if choice < 0.35 and (type_name != "N" or random.random() < 0.2):
            return f"begins_with({path}, {operand})"
        comparator = random.choice(("=", "<", "<=", ">", ">=", "<>" if choice > 0.97 else "="))
        return f"{path} {comparator} {operand}"

    # Projections and updates.

    def projection(self) -> str:
        """A ProjectionExpression; its paths sometimes overlap."""
        return self.random.choice((", ", ",")).join(
            self.path() for _ in range(self.random.randint(1, 4))
        )

    def update(self, keywords: tuple[str, ...] = ("SET", "REMOVE", "ADD", "DELETE")) -> str:
        """An UpdateExpression of these clauses; its paths sometimes overlap."""
        random = self.random
        clauses = []
        for keyword in random.sample(keywords, random.choice((1, 1, 2, 3))):
            word = keyword if random.random() < 0.9 else keyword.lower()
            actions = [self._action(keyword) for _ in range(random.choice((1, 1, 2)))]
            clauses.append(f"{word} {', '.join(actions)}")
        return " ".join(clauses)

    def _action(self, keyword: str) -> str:
        random = self.random
        match keyword:
            case "SET":
                attribute = self._updated()
                return f"{self.path(attribute)} = {self._set_operand(attribute)}"
            case "REMOVE":
                return self.path(self._updated())
            case "ADD":
                attribute = random.choice(("n", "size", "ss", "ns", "bs", "a", "x-y"))
            case _:
                attribute = random.choice(("ss", "ns", "bs", "a"))
        return f"{self.path(attribute)} {self.operand_for(attribute)}"

    def _updated(self) -> str:
        if self.random.random() < 0.03:
            return self.random.choice(self.schema.key)[0]
        return self.random.choice(tuple(values.ATTRIBUTES))

    def _set_operand(self, attribute: str) -> str:
        random = self.random
        choice = random.random()
        if choice < 0.5:
            return self.operand_for(attribute)
        if choice < 0.65:
            number = self.value(values.value(random, "N"))
            sign = random.choice(("+", "-", " + ", " - "))
            return f"{self.path(random.choice(('n', 'size', attribute)))}{sign}{number}"
        if choice < 0.75:
            fallback = self.operand_for(attribute)
            return f"if_not_exists({self.path(attribute)}, {fallback})"
        if choice < 0.85:
            added = self.value(values.value(random, "L"))
            operands = [self.path("l"), added]
            random.shuffle(operands)
            return f"list_append({', '.join(operands)})"
        if choice < 0.9:
            one, number = self.value({"N": "1"}), self.value({"N": "0"})
            return f"if_not_exists({self.path('n')}, {number}) + {one}"
        return self.path()
