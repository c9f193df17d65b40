"""The findings about a table, under headlines, and their form in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from msgspec import Struct, structs

from dynactor.api.advice.access_findings import access_findings
from dynactor.api.advice.facts import AdviceFacts
from dynactor.api.advice.index_findings import index_findings, index_key_findings
from dynactor.api.advice.key_findings import (
    Finding,
    Level,
    collection_findings,
    key_findings,
    throttling_findings,
)


class Asked(Struct, frozen=True):
    """A planned load, other provisioned units, and a planned index, as in ``dynactor advise``."""

    index_key: str | None = None
    write_units: int | None = None
    read_units: int | None = None
    writes_per_second: float | None = None
    item_size_bytes: int | None = None


def all_findings(facts: AdviceFacts, asked: Asked) -> list[tuple[str, list[Finding]]]:
    """The findings under headlines, most severe first."""
    # With --index-key, --writes-per-second is for the whole table, not for one partition key.
    key_question = (
        asked if asked.index_key is None else structs.replace(asked, writes_per_second=None)
    )
    parts = [
        ("Partition key", list(key_findings(facts, key_question))),
        ("Throughput", list(throttling_findings(facts, asked))),
        ("Item collections", list(collection_findings(facts))),
        ("Indexes", list(index_findings(facts))),
        ("Policies of the server", list(access_findings(facts.access))),
    ]
    if asked.index_key is not None:
        name = asked.index_key
        parts.append((f"An index on {name}", list(index_key_findings(facts, asked, name))))
    levels = get_args(Level)
    for _, findings in parts:
        findings.sort(key=lambda each: levels.index(each.level))
    return [(headline, findings) for headline, findings in parts if findings]


def report(facts: AdviceFacts, findings: Sequence[tuple[str, list[Finding]]]) -> dict[str, Any]:
    """The findings as JSON."""
    return {
        "table": facts.use.table,
        "items": facts.description["ItemCount"],
        "average_item_bytes": facts.average_item_bytes,
        "partitions": facts.use.partitions,
        "from": facts.traffic.start_epoch_seconds,
        "to": facts.use.now,
        "recording": facts.traffic.answer.recording,
        "sampled_items": len(facts.sample),
        "findings": [
            {
                "about": headline,
                "level": each.level,
                "rules": each.rules,
                "text": each.text,
                "advice": each.advice or None,
                **each.figures,
            }
            for headline, part_findings in findings
            for each in part_findings
        ],
    }
