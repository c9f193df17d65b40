"""An event loop whose clock only the test advances; its sockets are real.

So timing does not depend on the load of the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from time import monotonic
from typing import Final, ParamSpec

_Arguments = ParamSpec("_Arguments")

# Enough turns to complete work on sockets of this process.
_TURNS: Final = 50
_LONGEST_SECONDS: Final = 60


class SteppedLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self._began_at = monotonic()
        super().__init__()

    def time(self) -> float:
        # A failed test may wait for time-outs, so time finally advances by itself.
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
    """Advance time in steps, and run all due callbacks at each of them."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    ends_at = loop.now_seconds + seconds
    await settle()
    while loop.now_seconds < ends_at:
        loop.now_seconds = min(loop.now_seconds + step_seconds, ends_at)
        await settle()


async def settle() -> None:
    """Let both sides read and write everything they can."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
