"""An event loop with real sockets and a clock that only the test advances.

So timeouts do not depend on the load of the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from time import monotonic
from typing import Final, ParamSpec

_Arguments = ParamSpec("_Arguments")

# This many turns of the loop suffice for both ends of a local connection to read and write.
_TURNS: Final = 50
_LONGEST_SECONDS: Final = 60


class SteppedLoop(asyncio.SelectorEventLoop):
    """The event loop; its time starts at 0."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self._began_at = monotonic()
        super().__init__()

    def time(self) -> float:
        # After 60 real seconds the clock advances by itself, so that a failing test reaches its
        # timeouts.
        return self.now_seconds + max(0.0, monotonic() - self._began_at - _LONGEST_SECONDS)


def on_stepped_time(
    test: Callable[_Arguments, Coroutine[None, None, None]],
) -> Callable[_Arguments, None]:
    """Run a test on a ``SteppedLoop``."""

    @wraps(test)
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=SteppedLoop) as runner:
            runner.run(test(*arguments, **named))

    return run


async def pass_seconds(seconds: float, step_seconds: float = 0.25) -> None:
    """Advance the clock in steps, and run all due callbacks after each step."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    ends_at = loop.now_seconds + seconds
    await settle()
    while loop.now_seconds < ends_at:
        loop.now_seconds = min(loop.now_seconds + step_seconds, ends_at)
        await settle()


async def settle() -> None:
    """Let clients and servers read and write everything they can."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
