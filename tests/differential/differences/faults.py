"""Makes valid requests invalid, by faults in their JSON or in the meaning of their members."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.differential.requests import values

Body = dict[str, Any]
Place = tuple[str | int, ...]

WRONG_TYPES: tuple[Any, ...] = (5, 1.5, True, "text", [], {}, ["text"], {"S": "a"}, [{}], None)


def places(node: Any, place: Place = ()) -> Iterator[Place]:
    """The path of every node in a body, except the whole body."""
    if place:
        yield place
    if isinstance(node, dict):
        for name, member in node.items():
            yield from places(member, (*place, name))
    elif isinstance(node, list):
        for index, member in enumerate(node):
            yield from places(member, (*place, index))


def get(node: Any, place: Place) -> Any:
    """The value at a path."""
    for step in place:
        node = node[step]
    return node


def _name(place: Place) -> str:
    return ".".join(map(str, place))


class Faults:
    """Faults of bodies. Each method changes the body at one place and returns a description."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def break_body(self, operation: str, body: Body) -> str:
        """Put a random fault into the body."""
        weighted = (
            (4, self.drop_member),
            (2, self.null_member),
            (3, self.wrong_type),
            (2, self.empty_member),
            (5, self.out_of_range),
            (2, self.unknown_member),
            (6, self.bad_value),
            (6, self.bad_expression),
            (6, self.bad_placeholders),
            (6, self.bad_table_or_index),
            (7, self.bad_key),
            (8, self.contradiction),
        )
        for _ in range(20):
            fault = self.random.choices(
                [fault for _, fault in weighted], [weight for weight, _ in weighted]
            )[0]
            messages_match = fault(operation, body)
            if messages_match is not None:
                return messages_match
        return self.unknown_member(operation, body)

    def _place(self, body: Body) -> Place | None:
        found = list(places(body))
        if not found:
            return None
        # Members near the top have a higher weight, because they are few and differ between
        # operations.
        return self.random.choices(found, [4.0 / len(place) for place in found])[0]

    def drop_member(self, _: str, body: Body) -> str | None:
        place = self._place(body)
        if place is None:
            return None
        del get(body, place[:-1])[place[-1]]
        return f"without {_name(place)}"

    def null_member(self, _: str, body: Body) -> str | None:
        place = self._place(body)
        if place is None:
            return None
        get(body, place[:-1])[place[-1]] = None
        return f"null {_name(place)}"

    def wrong_type(self, _: str, body: Body) -> str | None:
        place = self._place(body)
        if place is None:
            return None
        wrong = copy.deepcopy(self.random.choice(WRONG_TYPES))
        get(body, place[:-1])[place[-1]] = wrong
        return f"{wrong!r} at {_name(place)}"

    def empty_member(self, _: str, body: Body) -> str | None:
        place = self._place(body)
        if place is None:
            return None
        old = get(body, place)
        if isinstance(old, bool | int | float | None):
            return None
        get(body, place[:-1])[place[-1]] = type(old)()
        return f"empty {_name(place)}"

    def unknown_member(self, _: str, body: Body) -> str:
        body["Unknown"] = self.random.choice((1, "a", [], {}))
        return "unknown member"

    def out_of_range(self, operation: str, body: Body) -> str | None:
        random = self.random
        wrong: dict[str, tuple[Any, ...]] = {
            "TableName": ("ab", "a" * 256, "bad name!", "arn:aws:dynamodb", ""),
            "ReturnConsumedCapacity": ("ALL", "total", ""),
        }
        if operation in {"PutItem", "UpdateItem", "DeleteItem"}:
            wrong |= {
                "ReturnValues": ("ALL", "ALL_NEW", "UPDATED_OLD", "none", ""),
                "ReturnItemCollectionMetrics": ("ALL", ""),
                "ReturnValuesOnConditionCheckFailure": ("ALL_NEW", "X"),
                "ConditionalOperator": ("XOR", "and"),
            }
        if operation == "BatchWriteItem":
            wrong |= {"ReturnItemCollectionMetrics": ("ALL", "")}
        if operation in {"Query", "Scan"}:
            wrong |= {
                "Select": ("ALL", "COUNT ", "ALL_PROJECTED_ATTRIBUTES"),
                "Limit": (0, -1, 2147483648),
                "IndexName": ("ab", "a" * 256, "bad name!"),
                "ConditionalOperator": ("XOR", "and"),
            }
        if operation == "Scan":
            wrong |= {
                "Segment": (-1, 1_000_000, 0),
                "TotalSegments": (0, 1_000_001, 2),
            }
        name = random.choice(tuple(wrong))
        if name == "TableName" and name not in body:
            return None
        body[name] = random.choice(wrong[name])
        return f"{name} {body[name]!r:.20}"

    def bad_value(self, _: str, body: Body) -> str | None:
        found = [
            place
            for place in places(body)
            if isinstance(get(body, place), dict)
            and len(get(body, place)) == 1
            and next(iter(get(body, place))) in values_types
        ]
        if not found:
            return None
        place = self.random.choice(found)
        name, bad = values.bad_value(self.random)
        get(body, place[:-1])[place[-1]] = bad
        return f"{name} at {_name(place)}"

    def bad_expression(self, _: str, body: Body) -> str | None:
        found = [place for place in places(body) if str(place[-1]).endswith("Expression")]
        if not found:
            return None
        place = self.random.choice(found)
        text = get(body, place)
        if not isinstance(text, str):
            return None
        messages_match, broken = self.break_text(text)
        get(body, place[:-1])[place[-1]] = broken
        return f"{messages_match} in {place[-1]}"

    def break_text(self, text: str) -> tuple[str, str]:
        """An expression with a fault, and a description of the fault."""
        random = self.random
        tokens = text.split(" ")
        at = random.randrange(len(tokens))
        match random.randint(0, 12):
            case 0:
                return "token dropped", " ".join(tokens[:at] + tokens[at + 1 :])
            case 1:
                return "token doubled", " ".join(tokens[: at + 1] + tokens[at:])
            case 2:
                random.shuffle(tokens)
                return "tokens shuffled", " ".join(tokens)
            case 3:
                tokens.insert(at, random.choice(("status", "Name", "year", "ABORT", "size")))
                return "reserved word put in", " ".join(tokens)
            case 4:
                tokens.insert(at, random.choice(("&", "$", "@x", "!", "'a'", "5", "_a", "1a", ";")))
                return "bad token put in", " ".join(tokens)
            case 5:
                return "doubled parentheses", f"(({text}))"
            case 6:
                return "parenthesis left open", f"({text}"
            case 7:
                return "cut off", text[: max(1, len(text) * random.randint(1, 9) // 10)]
            case 8:
                return "too long", text + " " * 4097
            case 9:
                called = random.choice(
                    ("foo(a)", "size(a)", "attribute_exists(a, b)", "SIZE(a) > :x")
                )
                tokens[at] = called
                return f"{called} put in", " ".join(tokens)
            case 10:
                return "undefined name", text + random.choice(
                    (", #undefined", " AND #undefined = a")
                )
            case 11:
                return "undefined value", text + random.choice(
                    (", a = :undefined", " AND a = :undefined")
                )
        return "blank", random.choice(("", " "))

    def bad_placeholders(self, operation: str, body: Body) -> str | None:
        if operation in {"BatchGetItem", "BatchWriteItem"}:
            return None
        random = self.random
        match random.randint(0, 8):
            case 0:
                self._into(body, "ExpressionAttributeValues", ":unused", {"S": "a"})
                return "unused value"
            case 1:
                self._into(body, "ExpressionAttributeNames", "#unused", "a")
                return "unused name"
            case 2:
                body["ExpressionAttributeValues"] = {}
                return "no values"
            case 3:
                body["ExpressionAttributeNames"] = {}
                return "no names"
            case 4:
                key = random.choice(("v", ":", ":a-b", ":a b", "#a", ""))
                self._into(body, "ExpressionAttributeValues", key, {"S": "a"})
                return f"value key {key!r}"
            case 5:
                key = random.choice(("n", "#", "#a-b", "#a b", ":a", ""))
                self._into(body, "ExpressionAttributeNames", key, "a")
                return f"name key {key!r}"
            case 6:
                name, bad = values.bad_value(random)
                self._into(body, "ExpressionAttributeValues", ":bad", bad)
                return f"{name} at :bad"
            case 7:
                held = body.get("ExpressionAttributeValues")
                if not held or not isinstance(held, dict):
                    return None
                held[random.choice(tuple(held))] = values.value(random)
                return "another value"
        self._into(body, "ExpressionAttributeNames", "#empty", "")
        return "empty name"

    @staticmethod
    def _into(body: Body, member: str, key: str, content: Any) -> None:
        if not isinstance(body.get(member), dict):
            body[member] = {}
        body[member][key] = content

    def bad_table_or_index(self, operation: str, body: Body) -> str | None:
        random = self.random
        if operation in {"Query", "Scan"} and random.random() < 0.6:
            body["IndexName"] = random.choice(("byNothing", "byName", "byBytes", "byCount"))
            return f"index {body['IndexName']}"
        if operation in {"BatchGetItem", "BatchWriteItem"}:
            requests = body.get("RequestItems")
            if not requests or not isinstance(requests, dict):
                return None
            name = random.choice(("NoSuchTable", "ab", "bad name!", ""))
            requests[name] = requests.pop(next(iter(requests)))
            return f"table {name!r}"
        body["TableName"] = random.choice(("NoSuchTable", "no.such_table-1"))
        return "no such table"

    def bad_key(self, _: str, body: Body) -> str | None:
        random = self.random
        found = [
            place for place in places(body) if place[-1] in ("Key", "Item", "ExclusiveStartKey")
        ]
        found += [place for place in places(body) if len(place) > 1 and place[-2] == "Keys"]
        found = [
            place for place in found if isinstance(get(body, place), dict) and get(body, place)
        ]
        if not found:
            return None
        place = random.choice(found)
        key = get(body, place)
        keys = [name for name in key if name in ("p", "s")] or list(key)
        name = random.choice(keys)
        match random.randint(0, 6):
            case 0:
                del key[name]
                return f"{_name(place)} without {name}"
            case 1:
                key["extra"] = {"S": "a"}
                return f"{_name(place)} with more"
            case 2:
                key[name] = values.value(random, random.choice(("BOOL", "NULL", "SS", "M", "L")))
                return f"{_name(place)} of no key type"
            case 3:
                key[name] = values.value(random, random.choice("SNB"))
                return f"{_name(place)} perhaps of another type"
            case 4:
                key[name] = random.choice(({"S": ""}, {"B": ""}))
                return f"{_name(place)} empty"
            case 5:
                key[name] = {"S": "k" * random.choice((1025, 2049))}
                return f"{_name(place)} too long"
        index_attribute = random.choice(("d", "n", "e"))
        key[index_attribute] = random.choice(
            ({"BOOL": True}, {"S": ""}, {"N": "1"}, {"S": "a"}, {"B": ""}, {"S": "x" * 1025})
        )
        return f"{_name(place)} with {index_attribute}"

    def contradiction(self, operation: str, body: Body) -> str | None:
        """Add a member that contradicts another one."""
        random = self.random
        extra: dict[str, tuple[Any, ...]] = {}
        if operation in {"PutItem", "UpdateItem", "DeleteItem"}:
            extra = {
                "Expected": ({"a": {"Value": {"S": "a"}}}, {}, {"a": {}}, {"a": {"Exists": True}}),
                "ConditionExpression": ("attribute_exists(p)", ":x = :x", "p"),
                "ConditionalOperator": ("AND", "OR"),
            }
        if operation == "UpdateItem":
            extra |= {
                "AttributeUpdates": ({"a": {"Action": "DELETE"}}, {}, {"p": {"Action": "DELETE"}}),
                "UpdateExpression": ("SET a = b", "REMOVE p", "SET p = a", "SET a = a, a = b"),
            }
        if operation == "GetItem":
            extra = {
                "AttributesToGet": (["a"], ["a", "a"], []),
                "ProjectionExpression": ("a", "a, a", "a.b, a"),
            }
        if operation == "Query":
            extra |= {
                "KeyConditions": (
                    {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
                    {},
                    {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
                    {"p": {"ComparisonOperator": "GT", "AttributeValueList": [{"S": "a"}]}},
                ),
                "QueryFilter": (
                    {"a": {"ComparisonOperator": "NULL"}},
                    {"p": {"ComparisonOperator": "NOT_NULL"}},
                ),
                "KeyConditionExpression": ("p = p", "a = a", "attribute_exists(p)", "p <> s"),
                "FilterExpression": ("attribute_exists(p)", "attribute_exists(s)", "a = b"),
            }
        if operation == "Scan":
            extra |= {
                "ScanFilter": ({"a": {"ComparisonOperator": "NULL"}}, {"p": {}}),
                "FilterExpression": ("attribute_exists(p)", "a"),
                "Segment": (0, 3),
                "TotalSegments": (1, 3),
            }
        if operation in {"Query", "Scan"}:
            extra |= {
                "AttributesToGet": (["a"], ["a", "a"], []),
                "ProjectionExpression": ("a", "a, a", "a.b, a"),
                "Select": (
                    "ALL_ATTRIBUTES",
                    "COUNT",
                    "SPECIFIC_ATTRIBUTES",
                    "ALL_PROJECTED_ATTRIBUTES",
                ),
                "ConditionalOperator": ("AND", "OR"),
                "ExclusiveStartKey": ({}, {"p": {"S": "a"}}, {"a": {"S": "a"}}),
            }
        if operation == "BatchGetItem":
            return self._batch_contradiction(body)
        if operation == "BatchWriteItem":
            return self._batch_write_contradiction(body)
        if not extra:
            return None
        name = random.choice(tuple(extra))
        body[name] = copy.deepcopy(random.choice(extra[name]))
        return f"{name} {body[name]!r:.40}"

    def _entry(self, body: Body) -> Any:
        requests = body.get("RequestItems")
        if not requests or not isinstance(requests, dict):
            return None
        return requests[next(iter(requests))]

    def _batch_contradiction(self, body: Body) -> str | None:
        entry = self._entry(body)
        if not isinstance(entry, dict) or not isinstance(entry.get("Keys"), list):
            return None
        random = self.random
        match random.randint(0, 3):
            case 0 if entry["Keys"]:
                entry["Keys"].append(copy.deepcopy(entry["Keys"][0]))
                return "key twice"
            case 1 if entry["Keys"] and isinstance(entry["Keys"][0], dict):
                entry["Keys"] = [
                    {name: {"S": f"k{number}"} for name in entry["Keys"][0]}
                    for number in range(101)
                ]
                return "101 keys"
            case 2:
                entry["AttributesToGet"] = random.choice((["a"], ["a", "a"], []))
                return "AttributesToGet"
        entry["ProjectionExpression"] = random.choice(("a", "a, a", "#undefined", "a."))
        return "ProjectionExpression"

    def _batch_write_contradiction(self, body: Body) -> str | None:
        entry = self._entry(body)
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], dict):
            return None
        match self.random.randint(0, 3):
            case 0:
                entry.append(copy.deepcopy(entry[0]))
                return "request twice"
            case 1:
                entry.extend(copy.deepcopy(entry[0]) for _ in range(26))
                return "27 requests"
            case 2:
                entry[0]["DeleteRequest"] = {"Key": {"p": {"S": "a"}}}
                entry[0]["PutRequest"] = {"Item": {"p": {"S": "a"}}}
                return "put and delete in one"
        entry[0] = {}
        return "neither put nor delete"


values_types = frozenset(("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"))
