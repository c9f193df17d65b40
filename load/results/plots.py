"""Draws results: latency by percentile, throughput over time.

matplotlib draws them; it is in the extra ``load`` and only needed here.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dynactor.load.results.comparison import HEADINGS, Case, Rounds, by_case, rows
from dynactor.load.results.histogram import merged
from dynactor.load.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The axis is like that of HdrHistogram's plots: 90 to 99 % is as wide as 99 to 99.9 %.
_NINES: Final = ("0", "90", "99", "99.9", "99.99", "99.999")
_STEPS_TO_A_NINE: Final = 20
_WIDTH_INCHES: Final = 13.0
_HEIGHT_INCHES: Final = 4.6

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}"
    "svg{max-width:100%;height:auto}"
)


class CannotPlot(Exception):
    """matplotlib is missing, or the file type is unknown; the message says how to fix it."""


def plot(results: Sequence[Result], path: Path) -> None:
    """Draw all cases into a file: .png, .svg, or .html with the tables beside the pictures.

    Raises:
        CannotPlot: see its docstring.
        OSError: the file can't be written.
    """
    check_plot(path)
    cases = by_case(results)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".html":
        path.write_text(_page(cases), encoding="utf-8")
    else:
        _figure(cases).savefig(path, dpi=110)


def check_plot(path: Path) -> None:
    """Check that a plot can be drawn, before a run of hours starts.

    Raises:
        CannotPlot: see its docstring.
    """
    if path.suffix not in {".png", ".svg", ".html"}:
        raise CannotPlot(f"{path}: a plot is a .png, .svg or .html file")
    if find_spec("matplotlib") is None:
        raise CannotPlot("Plots need matplotlib: pip install 'dynactor[load]'")


def _figure(cases: dict[Case, list[Rounds]]) -> Figure:
    # Drawn without pyplot, so no window system is needed.
    from matplotlib.figure import Figure  # noqa: PLC0415 - only plots need it

    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES * len(cases)), layout="constrained")
    axes = figure.subplots(len(cases), 2, squeeze=False)
    for (case, rounds_of_case), (left, right) in zip(cases.items(), axes, strict=True):
        _draw_latency(left, case, rounds_of_case)
        _draw_throughput(right, case, rounds_of_case)
    return figure


def _draw_latency(axes: Axes, case: Case, rounds_of_case: Sequence[Rounds]) -> None:
    for rounds in rounds_of_case:
        whole = merged(result.total.latency.decoded() for result in rounds.results)
        steps = _STEPS_TO_A_NINE * (len(_NINES) - 1)
        nines = [step / _STEPS_TO_A_NINE for step in range(steps + 1)]
        # A percentile of fewer than one request is not known.
        known = [place for place in nines if 10**place <= whole.total]
        times = [whole.percentile(100 - 100 * 10**-place) / 1e3 for place in known]
        axes.plot(known, times, label=rounds.label)
    axes.set_title(f"Latency: {case.text}", fontsize=10)
    axes.set_yscale("log")
    axes.set_xticks(range(len(_NINES)), _NINES)
    axes.set_xlabel("percentile")
    axes.set_ylabel("milliseconds")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()


def _draw_throughput(axes: Axes, case: Case, rounds_of_case: Sequence[Rounds]) -> None:
    for rounds in rounds_of_case:
        lines: list[object] = []
        for result in rounds.results:
            whole = [second for second in result.timeline if second.phase != "end"]
            drawn = axes.plot(
                [second.second + 1 for second in whole],
                [second.requests for second in whole],
                color=lines[0].get_color() if lines else None,  # type: ignore[attr-defined]
                label="" if lines else rounds.label,
            )
            lines.extend(drawn)
    axes.set_title(f"Throughput: {case.text}", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("requests/s")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def _page(cases: dict[Case, list[Rounds]]) -> str:
    """A self-contained page."""
    parts = [f"<!doctype html><meta charset=utf-8><title>Load</title><style>{_STYLE}</style>"]
    for case, rounds_of_case in cases.items():
        parts.append(f"<h2>{html.escape(case.text)}</h2>")
        head = "".join(f"<th>{heading}</th>" for heading in ("", *HEADINGS))
        parts.append(f"<table><tr>{head}</tr>")
        for row in rows(rounds_of_case):
            cells = "".join(f"<td>{html.escape(text)}</td>" for text in row)
            parts.append(f"<tr>{cells}</tr>")
        parts.append("</table>")
        drawing = StringIO()
        _figure({case: rounds_of_case}).savefig(drawing, format="svg")
        parts.append(
            drawing.getvalue().partition("<svg")[1] + drawing.getvalue().partition("<svg")[2]
        )
        machines = sorted({each.machine for rounds in rounds_of_case for each in rounds.results})
        parts.append(f"<p>{html.escape('; '.join(machines))}</p>")
    return "".join(parts)
