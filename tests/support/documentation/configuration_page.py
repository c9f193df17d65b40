"""The generated page docs/CONFIGURATION.md, written by ``make pages``.

The options of ``dynactor serve`` are its only source: names, groups, defaults and docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cyclopts.argument import Argument

from dynactor.api.command_line import app
from dynactor.api.options.option_list import help_texts

PAGE: Final = Path(__file__).parents[3] / "docs" / "CONFIGURATION.md"

_HEAD: Final = """\
# Configuration

<!-- Generated from the options. Write it again with `make pages`. -->

`dynactor serve` reads its configuration from options and from environment variables when it starts.
A configuration file does not exist, and no option can be changed while the server runs. Restart the
server to change one. [Test suites](TESTING.md#control-the-server-from-a-test) can change a few
settings over the admin port.

- `make serve ARGS="--port 9000"` passes options through `make`.
- Every option has an environment variable: `--data-dir` is `DYNACTOR_DATA_DIR`. An option on the
  command line overrides its variable. An empty variable counts as unset. The server warns
  about each variable that starts with `DYNACTOR_` and that no option reads.
- Set a flag to `true` or `false` in its variable: `DYNACTOR_IN_MEMORY=true`.
- Separate the values of a list with commas: `--allowed-hosts box.example.com,db.example.com`.
- Options of other commands have the command in their variable: `dynactor backup --name` is
  `DYNACTOR_BACKUP_NAME`.
- Times are in seconds and sizes are in bytes, unless the option's name ends in another unit.

`dynactor serve --help` prints the same options.
"""


def page() -> str:
    """The text of the page."""
    descriptions = help_texts()
    groups: dict[str, list[Argument]] = {}
    for argument in app["serve"].assemble_argument_collection():
        if argument.name.startswith("--"):
            groups.setdefault(_group(argument).name, []).append(argument)
    sections = (_section(arguments, descriptions) for arguments in groups.values())
    return "\n".join((_HEAD, *sections))


def _section(arguments: list[Argument], descriptions: Mapping[str, str]) -> str:
    group = _group(arguments[0])
    lines = [f"## {group.name}", ""]
    if group.help:
        lines += [group.help, ""]
    lines += ["| Option | Default | Description |", "| --- | --- | --- |"]
    lines += [_row(argument, descriptions) for argument in arguments]
    return "\n".join((*lines, ""))


def _row(argument: Argument, descriptions: Mapping[str, str]) -> str:
    description = _marked_up(descriptions[argument.name.removeprefix("--").replace("-", "_")])
    choices = argument.get_choices()
    if choices:
        description += " One of " + ", ".join(f"`{choice}`" for choice in choices) + "."
    if argument.negatives:
        description += f" `{argument.negatives[0]}` switches it off."
    return f"| `{argument.name}` | {_default(argument.field_info.default)} | {description} |"


def _marked_up(description: str) -> str:
    """A description as Markdown, with options as code and special characters escaped."""
    escaped = re.sub(r"([|*_<>])", r"\\\1", description)
    return re.sub(r"(?<!`)--[a-z][a-z-]*", r"`\g<0>`", escaped)


def _default(value: object) -> str:
    match value:
        case True:
            return "on"
        case False:
            return "off"
        case None | ():
            return ""
        case float() if value.is_integer():
            return f"`{int(value)}`"
        case _:
            return f"`{value}`"


def _group(argument: Argument) -> Any:
    groups: Any = argument.parameter.group
    [group] = groups
    return group


if __name__ == "__main__":
    PAGE.write_text(page())
