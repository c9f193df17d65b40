"""Environment variables: of the server, of other commands, empty ones and unknown ones."""

from __future__ import annotations

import json
from contextlib import closing

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import ask
from tests.support.servers.server import run_command, running_server


def test_a_command_reads_variables_of_its_own():
    with running_server("--admin-port", "0", "--virtual-clock", "0") as server:
        place = server.endpoint
        assert run_command("clock", DYNACTOR_CLOCK_ENDPOINT=place).returncode == 0
        done = run_command("clock", "step", "1h", DYNACTOR_CLOCK_STEP_ENDPOINT=place)
        assert done.stdout.startswith("1970-01-01T01:00:00.000Z")


def test_other_commands_ignore_a_variable_of_the_server():
    # ``backup`` must read neither the variable of the server's option nor one without a command.
    done = run_command(
        "backup", "--endpoint", "http://127.0.0.1:9", DYNACTOR_BACKUP_DIR="/", DYNACTOR_NAME="x"
    )
    assert "Cannot reach" in done.stderr
    assert "no option reads DYNACTOR_NAME" in done.stderr
    assert "DYNACTOR_BACKUP_DIR" not in done.stderr


def test_an_empty_variable_counts_as_unset():
    with running_server(environment={"DYNACTOR_REGION": "", "DYNACTOR_TTL_DELAY_SECONDS": ""}) as (
        server
    ):
        answer = ask(int(server.endpoint.rpartition(":")[2]), "/")
        assert b"dynamodb.us-east-1" in answer.body


def test_an_unknown_variable_is_reported_with_a_similar_one():
    with (
        running_server(environment={"DYNACTOR_REGOIN": "eu-west-1"}) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        assert "no option reads DYNACTOR_REGOIN; did you mean DYNACTOR_REGION?" in server.log
        assert json.dumps(call("ListTables", {}))


def test_known_variables_cause_no_warning():
    environment = {
        "DYNACTOR_ADMIN_PORT": "0",
        "DYNACTOR_PARTITIONS_PER_TABLE": "3",
        "DYNACTOR_NO_KEY_TRAFFIC": "true",
        "DYNACTOR_REPLAY_FROM": "beginning",
        "DYNACTOR_CLOCK_SET_TIME": "0",
        "DYNACTOR_TEST_KAFKA": "127.0.0.1:9",
    }
    with running_server(environment=environment) as server:
        assert "no option reads" not in server.log
