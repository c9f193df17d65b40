"""The command ``dynactor insights``: the busiest and the most throttled keys of the last hour.

AWS shows the counts of Contributor Insights in CloudWatch, a dynactor server on its admin port.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter
from cyclopts.types import PositiveInt

from dynactor.api.admin_api.insights_messages import INSIGHTS_PATH, InsightsAnswer
from dynactor.api.advice.text import figure, key_text, percent, table, time_span
from dynactor.api.advice.traffic import ACCESSES, CONFLICTS, THROTTLES, Traffic
from dynactor.api.clients.tables_address import TablesAddress
from dynactor.model.advice.key_traffic import EVERY, KEPT_KEYS, MINUTE_SECONDS, WHOLE_REQUESTS, Kind

_encode = msgspec.json.Encoder().encode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InsightsOptions:
    """The table or index, and the form of the output."""

    table: str
    """Table whose keys are shown."""

    index: str | None = None
    """Global secondary index to show instead of the table."""

    top: PositiveInt = 10
    """Number of keys of each kind, at most 32."""

    minutes: PositiveInt = 60
    """Number of recent minutes to show, at most 60."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print JSON."""

    server: TablesAddress = field(default_factory=TablesAddress)


def insights(options: InsightsOptions) -> None:
    """Run the command."""
    answer = _ask(options)
    since = answer.now - options.minutes * MINUTE_SECONDS
    shown = [minute for minute in answer.minutes if minute.start + MINUTE_SECONDS > since]
    traffic = Traffic(msgspec.structs.replace(answer, minutes=shown))
    top = min(options.top, KEPT_KEYS)
    if options.json:
        sys.stdout.write(_encode(_report(traffic, top)).decode() + "\n")
    else:
        sys.stdout.write(_text(traffic, top))


def _ask(options: InsightsOptions) -> InsightsAnswer:
    parameters = {"table": options.table}
    if options.index is not None:
        parameters["index"] = options.index
    server = options.server.admin_client()
    return server.ask("GET", INSIGHTS_PATH, InsightsAnswer, parameters=parameters)


# -- output ---------------------------------------------------------------------------------

_CHANCE: Final = 3

# The rules of DynamoDB: PKC, SKC, PKT, SKT.
_RULES: Final[tuple[tuple[str, tuple[Kind, ...], bool], ...]] = (
    ("Most accessed partition keys", ACCESSES, False),
    ("Most accessed items", ACCESSES, True),
    ("Most throttled partition keys", THROTTLES, False),
    ("Most throttled items", THROTTLES, True),
    ("Partition keys with most transaction conflicts", CONFLICTS, False),
    ("Items with most transaction conflicts", CONFLICTS, True),
)


def _rows(traffic: Traffic, kinds: tuple[Kind, ...], top: int, *, items: bool) -> list[Any]:
    # Leave out counts below the error, and in a sample counts of a few requests, as chance.
    least = _least(traffic, kinds)
    by_kind = [
        {_encode(each.key): each.weight for each in traffic.top([kind], KEPT_KEYS, items=items)}
        for kind in kinds
    ]
    # Conflicts are not counted separately for reads and writes.
    reads, writes = by_kind if len(by_kind) > 1 else ({}, {})
    return [
        {
            "key": load.key,
            "total": load.weight,
            "error": load.error,
            "share": load.weight / traffic.counted(dict.fromkeys(kinds, 1.0)),
            "reads": reads.get(_encode(load.key), 0.0),
            "writes": writes.get(_encode(load.key), 0.0),
            "busiest_second": load.busiest_second,
        }
        for load in traffic.top(kinds, top, items=items)
        if load.weight > max(least, load.error)
    ]


def _least(traffic: Traffic, kinds: tuple[Kind, ...]) -> float:
    """The count up to which a sampled key may be there by chance; 0 if all requests count."""
    is_sampled = traffic.answer.recording == "some" and traffic.total(*kinds) > WHOLE_REQUESTS
    return EVERY * _CHANCE if is_sampled else 0.0


def _bound(traffic: Traffic, kinds: tuple[Kind, ...], *, items: bool) -> float:
    """The count that no key exceeds; 0 if no request had a key."""
    most = traffic.most_of_any(kinds, items=items)
    return max(most, _least(traffic, kinds)) if most else 0.0


def _nothing_text(traffic: Traffic, title: str, kinds: tuple[Kind, ...], *, items: bool) -> str:
    """The line for a title without keys; empty if no request had a key."""
    bound = _bound(traffic, kinds, items=items)
    if not bound:
        return ""
    about = "about " if _least(traffic, kinds) else ""
    return (
        f"\n{title}\n  No {'item' if items else 'key'} stands out: none has more than "
        f"{about}{figure(bound)} {_what(kinds)}\n"
    )


def _what(kinds: tuple[Kind, ...]) -> str:
    return "units" if kinds == ACCESSES else "requests"


def _report(traffic: Traffic, top: int) -> dict[str, Any]:
    answer = traffic.answer
    return {
        "table": answer.table,
        "index": answer.index,
        "status": answer.status,
        "mode": answer.mode,
        "recording": answer.recording,
        "from": traffic.start_epoch_seconds,
        "to": answer.now,
        "read_units": traffic.total("reads"),
        "write_units": traffic.total("writes"),
        "throttled_requests": traffic.total(*THROTTLES),
        "transaction_conflicts": traffic.total(*CONFLICTS),
        **{
            _member(title): _rows(traffic, kinds, top, items=items)
            for title, kinds, items in _RULES
        },
        "bounds": {
            _member(title): _bound(traffic, kinds, items=items) for title, kinds, items in _RULES
        },
    }


def _member(title: str) -> str:
    return title.lower().replace(" ", "_")


def _text(traffic: Traffic, top: int) -> str:
    answer = traffic.answer
    name = f"Index {answer.index} of table" if answer.index else "Table"
    mode = f" ({answer.mode})" if answer.mode and answer.status == "ENABLED" else ""
    text = f"{name} {answer.table}: Contributor Insights is {answer.status}{mode}\n"
    text += _recording_text(answer)
    if not traffic.minutes:
        return text + "No requests were counted in this time\n"
    text += (
        f"{time_span(traffic.start_epoch_seconds, answer.now)}: "
        f"{figure(traffic.total('reads'))} read units, "
        f"{figure(traffic.total('writes'))} write units, "
        f"{figure(traffic.total(*THROTTLES))} throttled requests\n"
    )
    for title, kinds, items in _RULES:
        rows = _rows(traffic, kinds, top, items=items)
        if not rows:
            text += _nothing_text(traffic, title, kinds, items=items)
            continue
        what = _what(kinds)
        lines = [
            (
                key_text(row["key"]),
                figure(row["total"]),
                percent(row["share"]),
                figure(row["reads"]),
                figure(row["writes"]),
                figure(row["busiest_second"]),
            )
            for row in rows
        ]
        text += f"\n{title}\n"
        text += table(("", what, "share", "reads", "writes", "busiest second"), lines)
        error = max(row["error"] for row in rows)
        if error >= 1:
            text += f"  A key may have up to {figure(error)} {what} more\n"
    return text


def _recording_text(answer: InsightsAnswer) -> str:
    if answer.recording == "all":
        return ""
    if answer.recording == "some":
        return (
            "These counts are of a sample of the requests, for dynactor advise. To count all, "
            "enable Contributor Insights with UpdateContributorInsights\n"
        )
    return "No requests are counted: enable Contributor Insights with UpdateContributorInsights\n"
