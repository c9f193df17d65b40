"""Runs one cell against a server."""

from __future__ import annotations

import re
from typing import Any

from tests.guards.rules import Cell
from tests.support.clients.clients import Answer, WireClient


def fault_of(cell: Cell, wire: WireClient) -> str | None:
    """The fault in the server's answer to a cell's request; None if the rule was enforced."""
    answer = wire.send(cell.site.operation, cell.request())
    messages = refusals(answer)
    if any(re.search(cell.rule.message, text) for text in messages):
        return None
    return f"{answer.status}: {messages or answer.body[:300]!r}"


def refusals(answer: Answer) -> list[str]:
    """All refusals in an answer: of a request, of a transaction's actions, of statements."""
    body: Any = answer.json if answer.body else {}
    if answer.status == 200:
        return [
            f"{response['Error']['Code']}: {response['Error'].get('Message', '')}"
            for response in body.get("Responses", ())
            if isinstance(response, dict) and "Error" in response
        ]
    messages = [
        f"{body['__type'].partition('#')[2]}: {body.get('message', body.get('Message', ''))}"
    ]
    messages += [
        f"{reason['Code']}: {reason.get('Message', '')}"
        for reason in body.get("CancellationReasons", ())
    ]
    return messages if answer.status == 400 else []
