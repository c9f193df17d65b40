"""Each kind of drawn fault changes one place of a source, and leaves a source that parses."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.drawn import drawn
from tests.mutants.kinds import sites


@pytest.mark.parametrize(
    ("source", "kind", "new"),
    [
        ("x = a < b", "comparison", "x = (a) <= (b)"),
        ("x = 'ä' if a is None else b", "comparison", "x = 'ä' if (a) is not (None) else b"),
        ("x = a and b", "comparison", "x = ((a) or (b))"),
        ("x = not a", "comparison", "x = (a)"),
        ("x = 41", "bound", "x = 42"),
        ("x = min(a, 'b')", "bound", "x = max(a, 'b')"),
        ("f(1.5)", "forgotten call", "pass"),
        ("x = f(a, b, c=d)", "swapped names", "x = f(b, a, c=d)"),
    ],
)
def test_a_fault_is_planted(source: str, kind: str, new: str) -> None:
    assert [site.planted(source) for site in sites(source) if site.kind == kind] == [new]


def test_a_call_whose_result_is_awaited_is_forgotten() -> None:
    source = "async def f():\n    await (await g())\n"
    assert [site.planted(source).splitlines()[1].strip() for site in sites(source)] == ["pass"]


def test_an_await_is_lost_or_forgotten() -> None:
    source = "async def f():\n    await g()\n"
    assert [site.planted(source).splitlines()[1].strip() for site in sites(source)] == [
        "pass",
        "__import__('asyncio').ensure_future(g())",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "log.info('started', count=count)",
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "assert a < b",
        "if TYPE_CHECKING:\n    x = 1",
    ],
)
def test_a_place_without_behavior_gets_no_fault(source: str) -> None:
    assert sites(source) == []


def test_the_same_seed_draws_the_same_faults_and_each_can_be_planted() -> None:
    faults = drawn(1, 30)
    assert faults == drawn(1, 30)
    assert len({fault.room for fault in faults}) == 30
    for fault in faults:
        source = fault.path.read_text()
        planted = fault.site.planted(source)
        assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(source))
