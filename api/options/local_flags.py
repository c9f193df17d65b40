"""The flags of DynamoDB Local, as options of ``dynactor serve``. Pure.

Source: DynamoDB Developer Guide, "DynamoDB local usage notes", "Command line options".
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError

USAGE: Final = """\
Usage: dynactor local [-port PORT] [-inMemory | -dbPath DIRECTORY] [-sharedDb] [-cors ORIGINS]

Serve DynamoDB's API as DynamoDB Local does, with its flags. A flag may also begin with --.

  -port PORT                Port to listen on. Default: 8000
  -inMemory                 Keep data in memory. The data is lost when the server stops.
  -dbPath DIRECTORY         Directory in which the data's directory is made. Default: the current
                            one
  -sharedDb                 One set of tables for all access keys and regions.
  -cors ORIGINS             Origins of web pages that may use the server, separated by commas; *
                            for all. Default: none
  -delayTransientStatuses   Show CREATING, UPDATING and DELETING for a second.
  -optimizeDbBeforeStartup  Has no effect: data is compacted while the server runs.
  -disableTelemetry         Has no effect: the server sends none.
  -version                  Print the version.
  -help                     Print this.

`dynactor serve --compat dynamodb-local` is the same with all options of serve.
"""

_MOST_PORTS: Final = 65_536
_WITH_VALUE: Final = frozenset({"port", "dbPath", "cors"})
_ALONE: Final = frozenset(
    {
        "inMemory",
        "sharedDb",
        "delayTransientStatuses",
        "optimizeDbBeforeStartup",
        "disableTelemetry",
        "help",
        "version",
    }
)


class LocalFlags(Struct, frozen=True):
    """The flags of a command line."""

    port: int = 8000
    directory: Path | None = None
    in_memory: bool = False
    shares_tables: bool = False
    origins: tuple[str, ...] = ()
    delays_statuses: bool = False
    wants_help: bool = False
    wants_version: bool = False

    @property
    def data_directory(self) -> Path | None:
        """The directory of the data; None for memory.

        Shared and separate tables have other directories, as DynamoDB Local has other files.
        """
        if self.in_memory:
            return None
        kind = "shared" if self.shares_tables else "apart"
        return (self.directory or Path()) / f"dynactor-local-{kind}"


def parse_local_flags(arguments: Sequence[str]) -> LocalFlags:
    """Parse a command line; raises ``ConfigurationError`` if a flag is faulty."""
    given: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name = argument.lstrip("-")
        if argument == name or name not in _WITH_VALUE | _ALONE:
            raise _unknown(argument)
        if name in given:
            raise ConfigurationError(f"-{name} was given twice")
        given[name] = next(rest, "") if name in _WITH_VALUE else "yes"
        if not given[name] or given[name].startswith("-"):
            raise ConfigurationError(f"-{name} needs a value: dynactor local -help shows it")
    if "inMemory" in given and "dbPath" in given:
        raise ConfigurationError("-inMemory keeps nothing in -dbPath: give one of them")
    if "optimizeDbBeforeStartup" in given and "dbPath" not in given:
        raise ConfigurationError("-optimizeDbBeforeStartup needs -dbPath")
    return LocalFlags(
        port=_port(given.get("port", "8000")),
        directory=Path(given["dbPath"]) if "dbPath" in given else None,
        in_memory="inMemory" in given,
        shares_tables="sharedDb" in given,
        origins=tuple(given["cors"].split(",")) if "cors" in given else (),
        delays_statuses="delayTransientStatuses" in given,
        wants_help="help" in given,
        wants_version="version" in given,
    )


def _unknown(argument: str) -> ConfigurationError:
    near = get_close_matches(argument.lstrip("-"), _WITH_VALUE | _ALONE, n=1)
    meant = f"did you mean -{near[0]}?" if near else "dynactor local -help lists them"
    return ConfigurationError(f"DynamoDB Local has no flag {argument}: {meant}")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= _MOST_PORTS:
        raise ConfigurationError(f"-port {text} is not a port: give a number below {_MOST_PORTS}")
    return int(text)
