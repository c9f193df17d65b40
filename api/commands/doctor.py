"""The command ``dynactor doctor``: a report for support requests, without data or secrets."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from dynactor import __version__
from dynactor.api.admin_api.metrics_path import METRICS_PATH
from dynactor.api.clients.admin_client import AdminRequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.clients.server_address import ServerAddress

_DONE: Final = 0
_FAILED: Final = 1

# Variables whose values are reported: options of the server. Other variables are reported by name.
_REPORTED_VARIABLES: Final = re.compile(
    r"DYNACTOR_(?!.*(PASSWORD|SECRET|CREDENTIALS|FILE|DIR|HOST|ORIGIN|SERVERS|ENDPOINT|TABLE)).*"
)
_LABEL: Final = re.compile(r'(table|index|topic|region|access_key_id)="((?:[^"\\]|\\.)*)"')
_REQUIREMENT: Final = re.compile(r"[A-Za-z0-9_.-]+")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """The sources of the report, and its file."""

    data_dir: Path | None = None
    """Data directory whose files are listed with their sizes."""

    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None
    """File to write to, instead of standard output."""

    server: ServerAddress = field(default_factory=ServerAddress)


def doctor(options: DoctorOptions | None = None) -> int:
    """Run the command; returns its exit code."""
    options = options or DoctorOptions()
    report = {
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "dynactor": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "packages": _packages(),
        "limits": _limits(),
        "environment": _environment(),
        "server": _server(options.server),
        "data_directory": None if options.data_dir is None else _files(options.data_dir),
    }
    text = msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
    if options.output is None:
        sys.stdout.write(text)
        return _DONE
    try:
        options.output.write_text(text)
    except OSError as error:
        sys.stderr.write(f"dynactor: Cannot write {options.output}: {error.strerror}\n")
        return _FAILED
    sys.stdout.write(f"Written to {options.output}: read it before you send it\n")
    return _DONE


def _packages() -> dict[str, str | None]:
    """The installed versions of dynactor's dependencies."""
    try:
        required = distribution("dynactor").requires or []
    except PackageNotFoundError:
        return {}
    names = {found[0] for each in required if (found := _REQUIREMENT.match(each))}
    return {name: _version(name) for name in sorted(names)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _limits() -> dict[str, Any]:
    """The processors and the memory of the machine, and the limits of the process."""
    names = {"open_files": resource.RLIMIT_NOFILE, "address_space": resource.RLIMIT_AS}
    return {
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        **{name: resource.getrlimit(number) for name, number in names.items()},
    }


def _environment() -> dict[str, str]:
    return {
        name: value if _REPORTED_VARIABLES.fullmatch(name) else "(set)"
        for name, value in sorted(os.environ.items())
        if name.startswith("DYNACTOR_")
    }


def _server(address: ServerAddress) -> dict[str, Any]:
    """The state of a running server, with numbers instead of names."""
    try:
        found = address.identity()
    except (CannotCall, AdminRequestFailed) as error:
        return {"problem": str(error)}
    report: dict[str, Any] = {"version": found.version, "store": found.store}
    try:
        report["metrics"] = _without_names(address.admin_client().read(METRICS_PATH)).splitlines()
    except (CannotCall, AdminRequestFailed) as error:
        report["problem"] = str(error)
    return report


def _without_names(metrics: str) -> str:
    """Metrics with a number for each name of a table, an index or a topic."""
    numbers: dict[str, int] = {"": 0}
    return _LABEL.sub(
        lambda found: f'{found[1]}="{numbers.setdefault(found[2], len(numbers))}"', metrics
    )


def _files(directory: Path) -> dict[str, Any]:
    """The names and sizes of the files in a data directory, and the space of its disk."""
    try:
        disk = shutil.disk_usage(directory)
        files = {
            str(path.relative_to(directory)): path.stat().st_size
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }
    except OSError as error:
        return {"problem": str(error)}
    return {"disk_bytes": disk.total, "free_bytes": disk.free, "files": files}
