"""An event loop whose clock stands still until the test moves it; its sockets are real.

So whoever is to be in time is, however busy the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from time import monotonic
from typing import Final, ParamSpec

_Arguments = ParamSpec("_Arguments")

# What is under way on sockets of this process is done by then.
_TURNS: Final = 50
_LONGEST_SECONDS: Final = 60


class SteppedLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self._began_at = monotonic()
        super().__init__()

    def time(self) -> float:
        # A test that failed may wait for time-outs; so in the end time goes on by itself.
        return self.now_seconds + max(0.0, monotonic() - self._began_at - _LONGEST_SECONDS)


def on_stepped_time(
    test: Callable[_Arguments, Coroutine[None, None, None]],
) -> Callable[_Arguments, None]:
    """Run a test on such a loop."""

    @wraps(test)
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=SteppedLoop) as runner:
            runner.run(test(*arguments, **named))

    return run


async def pass_seconds(seconds: float, step_seconds: float = 0.25) -> None:
    """Let time pass in steps; at each of them all that is due is done."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    ends_at = loop.now_seconds + seconds
    await settle()
    while loop.now_seconds < ends_at:
        loop.now_seconds = min(loop.now_seconds + step_seconds, ends_at)
        await settle()


async def settle() -> None:
    """Let both sides read and write what they can."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
