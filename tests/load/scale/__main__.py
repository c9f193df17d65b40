"""Gets with millions of items: ``python -m tests.load.scale --help``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

from cyclopts import App, CycloptsError
from rich.console import Console

from dynactor.load.run.runner import RunFailed
from dynactor.load.run.table import CannotPrepare
from tests.load.scale.beyond_memory import measure_beyond_memory
from tests.load.scale.gets import measure_gets
from tests.load.scale.memory_group import NoMemoryGroup
from tests.load.scale.options import ScaleOptions

TROUBLE: Final = 2

_WIDTH: Final = 140

app = App(
    name="python -m tests.load.scale",
    help="""Measures this server with tables of up to millions of items.

    First the time to start, the memory and the gets of tables of several sizes, in rounds that
    alternate between servers. Then gets from a table that is larger than the memory, which a
    control group limits. Only root may create the group. Tables are filled without HTTP, with the
    same rows as puts write.""",
    version_flags=(),
)


@app.default
def run(options: ScaleOptions | None = None) -> int:
    """Measure, and print the result."""
    options = options or ScaleOptions()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    with ExitStack() as stack:
        directory = options.directory or Path(stack.enter_context(TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        try:
            if "gets" in options.parts:
                measure_gets(options, directory, console)
            if "memory" in options.parts:
                measure_beyond_memory(options, directory, console)
        except (CannotPrepare, NoMemoryGroup, OSError, RunFailed) as error:
            Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
            return TROUBLE
    return 0


def main() -> NoReturn:
    """Run the command line, and exit with its code."""
    try:
        code = app(exit_on_error=False, result_action="return_value")
    except CycloptsError:
        # Cyclopts has printed the error.
        code = TROUBLE
    sys.exit(code)


if __name__ == "__main__":
    main()
