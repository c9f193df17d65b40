"""The flags of DynamoDB Local in ``dynactor local``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.options.local_flags import USAGE, LocalFlags, parse_local_flags
from dynactor.model.configuration_error import ConfigurationError
from tests.support.servers.server import run_command


def test_no_flag_is_needed():
    flags = parse_local_flags([])
    assert flags == LocalFlags()
    assert flags.data_directory == Path("dynactor-local-apart")


@pytest.mark.parametrize("dash", ["-", "--"])
def test_each_flag_of_dynamodb_local_is_accepted(dash: str):
    flags = (
        "-port 9000 -dbPath /data -sharedDb -cors https://a.test,https://b.test "
        "-delayTransientStatuses -optimizeDbBeforeStartup -disableTelemetry -help -version"
    ).replace(" -", f" {dash}")
    assert parse_local_flags(flags.split()) == LocalFlags(
        port=9000,
        directory=Path("/data"),
        shares_tables=True,
        origins=("https://a.test", "https://b.test"),
        delays_statuses=True,
        wants_help=True,
        wants_version=True,
    )
    assert parse_local_flags([f"{dash}inMemory"]).data_directory is None


def test_shared_tables_have_a_directory_of_their_own():
    flags = parse_local_flags(["-dbPath", "data", "-sharedDb"])
    assert flags.data_directory == Path("data/dynactor-local-shared")
    assert parse_local_flags(["-dbPath", "data"]).data_directory == Path(
        "data/dynactor-local-apart"
    )


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("-verbose", "DynamoDB Local has no flag -verbose: dynactor local -help lists them"),
        ("-inmemory", "DynamoDB Local has no flag -inmemory: did you mean -inMemory?"),
        ("--shared-db", "DynamoDB Local has no flag --shared-db: did you mean -sharedDb?"),
        ("inMemory", "DynamoDB Local has no flag inMemory: did you mean -inMemory?"),
        ("-port", "-port needs a value: dynactor local -help shows it"),
        ("-dbPath -sharedDb", "-dbPath needs a value: dynactor local -help shows it"),
        ("-port 99999", "-port 99999 is not a port: give a number below 65536"),
        ("-port x", "-port x is not a port: give a number below 65536"),
        ("-sharedDb -sharedDb", "-sharedDb was given twice"),
        ("-inMemory -dbPath x", "-inMemory keeps nothing in -dbPath: give one of them"),
        ("-optimizeDbBeforeStartup", "-optimizeDbBeforeStartup needs -dbPath"),
    ],
)
def test_invalid_flags_are_refused_with_a_sentence(flags: str, told: str):
    with pytest.raises(ConfigurationError) as failed:
        parse_local_flags(flags.split())
    assert str(failed.value) == told


def test_the_command_prints_its_flags_and_refuses_others():
    for flag in ("-help", "--help"):
        assert run_command("local", flag).stdout == USAGE
    refused = run_command("local", "-inMemory", "-verbose")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "dynactor: DynamoDB Local has no flag -verbose: dynactor local -help lists them\n"
    )
