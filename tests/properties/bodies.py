"""Random request bodies: broken requests, broken JSON, and bytes that are not JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.differential.requests import tables
from tests.differential.requests.generate import item_request
from tests.differential.requests.request import Request
from tests.differential.requests.schemas import Schema

# Operations in addition to those of the request generator: unimplemented or invalid names.
OTHER_OPERATIONS = (
    "TransactWriteItems",
    "ExecuteTransaction",
    "CreateBackup",
    "ListBackups",
    "RestoreTableFromBackup",
    "ImportTable",
    "NoSuch",
    "",
    "É x",
)
ODD_TEXTS = (
    "",
    "\x00",
    "é" * 300,
    "a" * 70_000,
    "\\ud800",
    "\u2028",
    "'\";--",
    "{}",
    "null",
    "NaN",
)


def bodies(random: Random, named: dict[str, Schema], prefix: str) -> Iterator[tuple[str, bytes]]:
    """Operations and random bodies, endlessly, on the tables ``named`` or new ones ``prefix…``."""
    while True:
        choice = random.random()
        if choice < 0.15:
            request = tables.step(random, prefix)
        else:
            table = random.choice(tuple(named))
            request = item_request(random, named[table], table, random.randint(0, 4))
        if choice > 0.9:
            yield request.operation, _odd(random, request)
        elif choice > 0.7:
            yield request.operation, _damaged(random, request.body.encode())
        elif choice > 0.65:
            yield random.choice(OTHER_OPERATIONS), request.body.encode()
        else:
            yield request.operation, request.body.encode()


def _damaged(random: Random, body: bytes) -> bytes:
    """A body with missing, repeated or changed bytes."""
    at, to = sorted((random.randint(0, len(body)), random.randint(0, len(body))))
    match random.randint(0, 6):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + body[to:]
        case 2:
            return body[:to] + body[at:]
        case 3:
            return body[:at] + random.randbytes(random.randint(1, 4)) + body[at:]
        case 4:
            return body.replace(random.choice((b'"', b":", b"{", b",", b"[")), b"", 1)
        case 5:
            old = random.choice((b'"S"', b'"N"', b'"M"', b'"L"', b'"B"', b'"SS"', b'"BOOL"'))
            return body.replace(old, random.choice((b'"N"', b'"L"', b'"NULL"', b'"BS"', b'""')))
    return body.replace(b'"', b"'") if random.random() < 0.5 else body * 2


def _odd(random: Random, request: Request) -> bytes:
    """A body of valid or almost valid JSON that no client would send."""
    match random.randint(0, 8):
        case 0:
            return random.randbytes(random.randint(0, 200))
        case 1:
            return json.dumps(_json(random, 0)).encode()
        case 2:
            depth = random.choice((40, 1000, 100_000))
            return b'{"TableName":' + b"[" * depth + b"]" * depth + b"}"
        case 3:
            depth = random.choice((31, 33, 1000, 20_000))
            value = b'{"L":[' * depth + b'{"S":"x"}' + b"]}" * depth
            return b'{"TableName":"abc","Item":{"p":' + value + b"}}"
        case 4:
            return request.body.encode(random.choice(("utf-16", "utf-32", "utf-8-sig")))
        case 5:
            number = random.choice((b"1e999", b"-0.0", b"1" * 400, b"NaN", b"1E-9999", b"01"))
            return b'{"TableName":"abc","Limit":' + number + b"}"
        case 6:
            parsed = json.loads(request.body)
            return json.dumps(_with_odd_text(random, parsed)).encode()
        case 7:
            return request.body.replace('"TableName"', '"TableName":1,"TableName"').encode()
    # Half of a surrogate pair is valid JSON, but not valid text.
    return request.body.replace('"a"', '"\\ud800"').replace('"p"', '"\\udc00p"').encode()


def _json(random: Random, level: int) -> Any:
    kind = random.randint(0, 7 if level < 4 else 5)
    if kind < 6:
        return random.choice((None, True, 0, -1.5, 2**70, "a", "TableName", {}, [], "S"))
    names = ("TableName", "Key", "Item", "S", "N", "L", "M", "RequestItems", "Keys", "a")
    if kind == 6:
        return {
            name: _json(random, level + 1) for name in random.sample(names, random.randint(0, 4))
        }
    return [_json(random, level + 1) for _ in range(random.randint(0, 3))]


def _with_odd_text(random: Random, node: Any) -> Any:
    """The same body with a tenth of its texts replaced, including names of members."""

    def odd(text: str) -> str:
        return random.choice(ODD_TEXTS) if random.random() < 0.1 else text

    if isinstance(node, dict):
        return {odd(name): _with_odd_text(random, member) for name, member in node.items()}
    if isinstance(node, list):
        return [_with_odd_text(random, member) for member in node]
    return odd(node) if isinstance(node, str) else node
