"""Which modules each command may import, because few imports make commands start fast."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from dynactor.api.command_line import app
from tests.support.servers.server import PROJECT

# Runs the command line, then lists the loaded modules.
PROGRAM = """
import atexit, json, sys
from dynactor.api.command_line import main
atexit.register(lambda: sys.stderr.write("\\n" + json.dumps(sorted(sys.modules))))
main()
"""
# An address without a listener.
NOBODY = ("--admin-endpoint", "http://127.0.0.1:9")

PARSER = {"attr", "attrs", "cyclopts", "docstring_parser", "typing_extensions"}
CLIENT = PARSER | {"msgspec"}
COMMAND_LINE = {
    "dynactor",
    "dynactor.api",
    "dynactor.api.command_line",
    "dynactor.api.clients",
    "dynactor.api.clients.reach",
    "dynactor.api.environment_variables",
    "dynactor.model",
    "dynactor.model.configuration_error",
}
ADMIN_CLIENT = COMMAND_LINE | {
    f"dynactor.api.{name}"
    for name in (
        "admin_api",
        "clients.admin_client",
        "clients.server_address",
        "commands",
    )
}
ADMIN_CLIENT |= {
    "dynactor.api.admin_api.change_header",
    "dynactor.api.admin_api.secret_file",
    "dynactor.api.clients.trusted_authorities",
    "dynactor.api.http",
    "dynactor.api.http.server_identity",
}

COMMANDS = {
    ("--version",): (PARSER | {"rich"}, COMMAND_LINE),
    ("--help",): (PARSER | {"rich"}, COMMAND_LINE),
    ("clock", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT
        | {
            "dynactor.api.admin_api.clock_messages",
            "dynactor.api.commands.clock",
            "dynactor.api.admin_api.times",
        },
    ),
    ("backup", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT | {"dynactor.api.admin_api.backup_messages", "dynactor.api.commands.backup"},
    ),
    ("nodes", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT | {"dynactor.api.admin_api.nodes_messages", "dynactor.api.commands.nodes"},
    ),
    ("doctor", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT
        | {
            "dynactor.api.admin_api.metrics_path",
            "dynactor.api.commands.doctor",
        },
    ),
    ("insights", "--table", "t", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT
        | {
            "dynactor.api.admin_api.insights_messages",
            "dynactor.api.admin_api.region_parameters",
            "dynactor.api.advice",
            "dynactor.api.advice.text",
            "dynactor.api.advice.traffic",
            "dynactor.api.clients.caller_scope",
            "dynactor.api.commands.insights",
            "dynactor.api.clients.tables_address",
            "dynactor.model",
            "dynactor.model.advice",
            "dynactor.model.advice.heavy_hitters",
            "dynactor.model.advice.key_traffic",
            "dynactor.model.values",
            "dynactor.model.values.value_types",
        },
    ),
    ("jobs", "list", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT
        | {
            "dynactor.api.admin_api.job_messages",
            "dynactor.api.admin_api.region_parameters",
            "dynactor.api.clients.caller_scope",
            "dynactor.api.commands.jobs",
            "dynactor.api.clients.tables_address",
            "dynactor.api.admin_api.times",
        },
    ),
    ("replay", "--table", "t", "--from", "beginning", "--to-topic", "u", *NOBODY): (
        CLIENT,
        ADMIN_CLIENT
        | {
            "dynactor.actors",
            "dynactor.actors.derived",
            "dynactor.actors.derived.kafka",
            "dynactor.actors.derived.kafka.replay_progress",
            "dynactor.api.admin_api.region_parameters",
            "dynactor.api.admin_api.replay_messages",
            "dynactor.api.clients.caller_scope",
            "dynactor.api.commands.replay",
            "dynactor.api.clients.tables_address",
        },
    ),
}

# For commands that take longer, the folders of dynactor from which they may import.
ROOMS = {
    ("check", "/nonexistent"): (
        CLIENT | {"colorama", "rocksdict", "structlog"},
        {"api", "model", "storage"},
    ),
    ("copy", "--from", "/nonexistent", "--to", "/nonexistent"): (
        CLIENT | {"anyio", "colorama", "pygments", "rich", "rocksdict", "structlog"},
        {"api", "model", "storage"},
    ),
    ("load", "--endpoint", "http://127.0.0.1:9"): (
        CLIENT | {"rich"},
        {"api", "load", "model"},
    ),
    ("policy", "test", "/nonexistent", "/nonexistent"): (CLIENT, {"api", "model"}),
    ("encrypt-keys", "/nonexistent", "--credentials-key-file", "/nonexistent"): (
        CLIENT,
        {"api", "model"},
    ),
}
# Commands that use DynamoDB's API through aiohttp.
REQUESTS = [
    ("advise", "--table", "t", *NOBODY),
    ("export", "music", "/nonexistent", "--endpoint", "http://127.0.0.1:9"),
    ("import", "README.md", "--table", "music", "--endpoint", "http://127.0.0.1:9"),
    ("mirror", "--from", "http://127.0.0.1:9/music", "--to", "http://127.0.0.1:9/copy"),
    ("violations", "--table", "t", "--index", "i", "--endpoint", "http://127.0.0.1:9"),
]
# These servers end after their imports, because the host or the port can't be opened.
SERVERS = [
    ("serve", "--in-memory", "--host", "192.0.2.1", "--allow-open"),
    ("local", "-inMemory", "-port", "{port in use}"),
]


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(modules)


def packages(modules: set[str]) -> set[str]:
    """The packages that are not in Python's standard library."""
    names = {name.partition(".")[0] for name in modules}
    return {
        name for name in names - sys.stdlib_module_names - {"dynactor"} if not name.startswith("_")
    }


def surplus() -> set[str]:
    """The packages that every program in this environment imports."""
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return packages(set(bare.stdout.split()))


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_command_imports_only_its_allowed_modules(arguments: tuple[str, ...]):
    modules = loaded(*arguments)
    allowed_packages, allowed_modules = COMMANDS[arguments]
    assert packages(modules) - surplus() <= allowed_packages
    assert {name for name in modules if name.startswith("dynactor")} <= allowed_modules
    assert "cyclopts.completion" not in modules


@pytest.mark.parametrize("arguments", ROOMS, ids=lambda arguments: arguments[0])
def test_a_command_imports_only_from_its_allowed_folders(arguments: tuple[str, ...]):
    modules = loaded(*arguments)
    allowed_packages, allowed_rooms = ROOMS[arguments]
    assert packages(modules) - surplus() <= allowed_packages
    rooms = {name.split(".")[1] for name in modules if name.startswith("dynactor.")}
    assert rooms <= allowed_rooms


@pytest.mark.parametrize("arguments", REQUESTS, ids=lambda arguments: arguments[0])
def test_commands_that_send_requests_import_no_storage_engine(arguments: tuple[str, ...]):
    modules = loaded(*arguments)
    assert "dynactor.api.clients.client" in modules
    assert not packages(modules) & {"aiokafka", "prometheus_client", "rocksdict", "uvloop"}


def test_the_modules_of_every_command_are_listed():
    listed = {arguments[0] for arguments in (*COMMANDS, *ROOMS, *REQUESTS, *SERVERS)}
    assert listed == set(app) - {"-h", "--install-completion"}


def test_options_that_are_refused_start_no_server():
    modules = loaded("serve", "--in-memory", "--ttl-deletes-per-second", "0")
    assert not modules & {"aiohttp", "anyio", "rocksdict", "structlog", "dynactor.storage.rocks"}


@pytest.mark.parametrize("arguments", SERVERS, ids=lambda arguments: arguments[0])
def test_a_server_traces_and_publishes_nothing_by_default(arguments: tuple[str, ...]):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        modules = loaded(*(word.replace("{port in use}", port) for word in arguments))
    assert modules >= {"aiohttp", "rocksdict", "structlog", "dynactor.actors.database.database"}
    assert not packages(modules) & {"aiokafka", "markdown_it", "prometheus_client", "rich"}
