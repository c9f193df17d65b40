"""dynactor's pytest plugin in test suites of users."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.environment.suites import run_suite, suite_command, suite_environment
from tests.support.servers.server import PROJECT

# A module that such a suite tests; it does not depend on the suite.
THREADS = """
import boto3

def make_table():
    boto3.resource("dynamodb").create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

def add(name):
    boto3.resource("dynamodb").Table("Thread").put_item(Item={"ForumName": name})
"""

TESTS = """
import pytest
import threads

@pytest.mark.parametrize("turn", range(3))
def test_begins_empty(dynamodb, turn):
    assert list(dynamodb.tables.all()) == []
    threads.make_table()
    threads.add("EC2")
    assert dynamodb.Table("Thread").item_count == 1

def test_has_a_client(dynamodb_client):
    assert dynamodb_client.list_tables()["TableNames"] == []
"""


def assert_passed(done: subprocess.CompletedProcess[str], passed: int) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout


def test_every_test_starts_with_an_empty_server_that_the_tested_code_finds(tmp_path: Path):
    assert_passed(run_suite(tmp_path, {"threads.py": THREADS, "test_threads.py": TESTS}), 4)


SHOWS_THE_ENVIRONMENT = """
import os
import pytest

NAMES = [
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION",
    "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_CONFIG_FILE",
]

def shown():
    return {name: os.environ.get(name) for name in NAMES}

before = shown()

@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    assert shown() == before, shown()
    print("RESTORED")
"""

LOOKS_AT_THE_ENVIRONMENT = """
import os
import boto3

def test_environment(dynamodb_endpoint):
    assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == dynamodb_endpoint
    assert os.environ["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] == dynamodb_endpoint
    assert os.environ["AWS_DEFAULT_REGION"] == "eu-central-1"
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        assert name not in os.environ
    client = boto3.client("dynamodb")
    assert client.meta.endpoint_url == dynamodb_endpoint
    assert client.meta.region_name == "eu-central-1"
    assert boto3.client("dynamodbstreams").meta.endpoint_url == dynamodb_endpoint
    assert client.list_tables()["TableNames"] == []
"""


def test_the_environment_is_set_for_the_run_and_restored(tmp_path: Path):
    aws = tmp_path / ".aws"
    aws.mkdir()
    (aws / "config").write_text(
        "[default]\nregion = us-west-2\nignore_configured_endpoint_urls = true\n"
        "[profile real]\nendpoint_url = http://127.0.0.1:9\n"
    )
    done = run_suite(
        tmp_path,
        {"conftest.py": SHOWS_THE_ENVIRONMENT, "test_environment.py": LOOKS_AT_THE_ENVIRONMENT},
        "-s",
        ini="dynactor_region = eu-central-1",
        HOME=str(tmp_path),
        AWS_PROFILE="real",
        AWS_SESSION_TOKEN="real",
        AWS_SECRET_ACCESS_KEY="real",
        AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true",
    )
    assert_passed(done, 1)
    assert "RESTORED" in done.stdout


def test_a_suite_without_the_fixtures_has_no_server_and_its_own_environment(tmp_path: Path):
    test = """
import os
import psutil

def test_environment():
    assert os.environ["AWS_PROFILE"] == "real"
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ
    assert psutil.Process().children() == []
"""
    assert_passed(run_suite(tmp_path, {"test_environment.py": test}, AWS_PROFILE="real"), 1)


REACHES_AWS = """
import boto3

early = boto3.client("dynamodb", region_name="us-east-1")

def test_another_service(dynamodb):
    boto3.client("s3").list_buckets()

def test_a_client_that_was_made_too_early(dynamodb):
    early.list_tables()
"""


def test_no_test_reaches_aws_by_mistake(tmp_path: Path):
    done = run_suite(
        tmp_path,
        {"test_aws.py": REACHES_AWS},
        AWS_ACCESS_KEY_ID="real",
        AWS_SECRET_ACCESS_KEY="real",
    )
    assert "2 failed" in done.stdout
    assert "A test called s3.amazonaws.com, and dynactor's plugin blocks requests to AWS" in (
        done.stdout
    )
    assert 'or set dynactor_start = "run"' in done.stdout


def test_aiobotocore_does_not_reach_aws_by_mistake(tmp_path: Path):
    test = """
import pytest
from aiobotocore.session import get_session
from dynactor.api.testing.aws_guard import ReachesAWS

async def test_services(dynamodb_endpoint):
    async with get_session().create_client("dynamodb") as client:
        assert (await client.list_tables())["TableNames"] == []
    async with get_session().create_client("sqs") as client:
        with pytest.raises(ReachesAWS):
            await client.list_queues()
"""
    done = run_suite(
        tmp_path,
        {"test_aws.py": test},
        ini="asyncio_mode = auto",
        plugins=("pytest_asyncio.plugin",),
    )
    assert_passed(done, 1)


def test_requests_to_aws_can_be_allowed(tmp_path: Path):
    test = """
import botocore.httpsession

def test_nothing_is_guarded(dynamodb):
    assert botocore.httpsession.URLLib3Session.send.__module__ == "botocore.httpsession"
"""
    assert_passed(run_suite(tmp_path, {"test_aws.py": test}, ini="dynactor_allow_aws = true"), 1)


def test_a_server_started_with_the_run_serves_clients_created_at_import(tmp_path: Path):
    test = """
import boto3

table = boto3.resource("dynamodb").Table("Thread")

def test_it(dynamodb):
    dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    table.put_item(Item={"ForumName": "EC2"})
"""
    ini = "dynactor_start = run"
    assert_passed(run_suite(tmp_path, {"test_early.py": test}, ini=ini), 1)
    done = run_suite(tmp_path, {}, "-n", "2", ini=ini, plugins=("xdist",))
    assert_passed(done, 1)


def test_each_worker_of_a_parallel_run_has_a_server(tmp_path: Path):
    test = """
import pathlib
import pytest

@pytest.mark.parametrize("turn", range(8))
def test_it(dynamodb, dynamodb_endpoint, worker_id, turn):
    pathlib.Path(f"{worker_id}-{dynamodb_endpoint.rpartition(':')[2]}").touch()
    dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
"""
    assert_passed(run_suite(tmp_path, {"test_it.py": test}, "-n", "2", plugins=("xdist",)), 8)
    ports = [path.name.split("-") for path in tmp_path.glob("gw*-*")]
    assert sorted(worker for worker, _ in ports) == ["gw0", "gw1"]
    assert len({port for _, port in ports}) == 2


def test_a_failed_test_shows_the_log_of_the_server_during_it(tmp_path: Path):
    test = """
def test_passes(dynactor_server):
    dynactor_server.snapshots.make("seed")

def test_fails(dynactor_server):
    try:
        dynactor_server.snapshots.make("seed")
    except RuntimeError:
        pass
    # A request that is none of DynamoDB's, so that the server has something to say.
    import signal, os
    os.kill(dynactor_server.process_id, signal.SIGTERM)
    os.waitid(os.P_PID, dynactor_server.process_id, os.WEXITED | os.WNOWAIT)
    assert False

def test_fails_at_once(dynactor_server):
    pass
"""
    done = run_suite(tmp_path, {"test_it.py": test})
    assert "1 failed, 1 passed, 1 error" in done.stdout, done.stdout
    assert "Log of the dynactor server" in done.stdout
    assert re.search(r"stop_requested +signal=SIGTERM", done.stdout)
    assert "The server ended with exit code 0. Its log ends with" in done.stdout


def test_a_failed_start_is_reported_for_every_test_and_not_repeated(tmp_path: Path):
    test = """
import pytest

@pytest.mark.parametrize("turn", range(50))
def test_it(dynamodb, turn):
    pass
"""
    done = run_suite(tmp_path, {"test_it.py": test}, ini="dynactor_options = --gsi-lag long")
    assert "50 errors" in done.stdout
    assert "The server ended with exit code 1" in done.stdout
    assert "--gsi-lag long is not understood" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_test_can_control_the_server(tmp_path: Path):
    test = """
import boto3
import pytest

def make_table(dynamodb):
    dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )

def test_settings(dynactor_server, dynamodb):
    make_table(dynamodb)
    dynactor_server.lag = "fixed:1"
    dynactor_server.throttling = "observe"
    assert dynactor_server.settings["gsi_lag"] == dynactor_server.lag == "fixed:1"
    assert [table.name for table in dynamodb.tables.all()] == ["Thread"]

def test_settings_are_back(dynactor_server):
    assert (dynactor_server.lag, dynactor_server.throttling) == ("awaited", "auto")

def test_snapshots(dynactor_server, dynamodb):
    make_table(dynamodb)
    dynactor_server.snapshots.make("tables")
    dynactor_server.reset()
    assert list(dynamodb.tables.all()) == []
    dynactor_server.snapshots.restore("tables")
    assert [table.name for table in dynamodb.tables.all()] == ["Thread"]
    assert dynactor_server.snapshots.names == ["tables"]
    dynactor_server.snapshots.delete("tables")

def test_the_clock_runs_and_can_be_moved(dynactor_server):
    import time
    before = dynactor_server.clock.now
    assert abs(before - time.time()) < 60
    assert dynactor_server.clock.step(86400) >= before + 86400
    assert dynactor_server.clock.set(speed=0) == dynactor_server.clock.now

def test_the_clock_is_back(dynactor_server):
    import time
    assert abs(dynactor_server.clock.now - time.time()) < 60
"""
    done = run_suite(tmp_path, {"test_it.py": test}, ini="dynactor_options = --gsi-lag awaited")
    assert_passed(done, 5)


def test_fixtures_of_a_wider_scope_keep_their_data(tmp_path: Path):
    test = """
import pytest

@pytest.fixture(scope="module")
def table(dynamodb):
    return dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

@pytest.mark.parametrize("turn", range(3))
def test_counts(table, turn):
    assert table.item_count == turn
    table.put_item(Item={"ForumName": str(turn)})
"""
    files = {"test_one.py": test, "test_two.py": test}
    assert_passed(run_suite(tmp_path, files, ini="dynactor_scope = module"), 6)


def test_fixtures_may_have_other_names_and_be_overridden(tmp_path: Path):
    conftest = """
import pytest

@pytest.fixture
def dynamodb():
    return "another plugin's"

@pytest.fixture
def my_dynamodb(my_dynamodb):
    my_dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return my_dynamodb
"""
    test = """
def test_it(dynamodb, my_dynamodb, my_dynamodb_endpoint, my_dynactor_server, my_dynamodb_client):
    assert dynamodb == "another plugin's"
    assert my_dynactor_server.endpoint == my_dynamodb_endpoint
    assert my_dynamodb_client.list_tables()["TableNames"] == ["Thread"]
"""
    files = {"conftest.py": conftest, "test_it.py": test}
    assert_passed(run_suite(tmp_path, files, ini="dynactor_fixture_prefix = my_"), 1)


@pytest.mark.parametrize("ini", ["dynactor_scope = test", "dynactor_start = later"])
def test_an_unknown_option_is_refused(tmp_path: Path, ini: str):
    done = run_suite(tmp_path, {"test_it.py": "def test_it(): pass"}, ini=ini)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "give one of" in done.stderr


def test_without_boto3_the_error_shows_the_command_to_install_it(tmp_path: Path):
    files = {
        "conftest.py": "import sys\nsys.modules['boto3'] = None\n",
        "test_it.py": "def test_it(dynamodb): pass\ndef test_endpoint(dynamodb_endpoint): pass\n",
    }
    done = run_suite(tmp_path, files)
    assert "1 passed, 1 error" in done.stdout
    assert "needs boto3: pip install 'dynactor[pytest]'" in done.stdout


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_tests_of_pytest_asyncio_use_the_fixtures(tmp_path: Path, mode: str):
    test = """
import pytest

@pytest.mark.asyncio
async def test_it(dynamodb, dynactor_server):
    assert list(dynamodb.tables.all()) == []
    dynactor_server.clock.step(1)
"""
    ini = f"asyncio_mode = {mode}"
    done = run_suite(tmp_path, {"test_it.py": test}, ini=ini, plugins=("pytest_asyncio.plugin",))
    assert_passed(done, 1)


def test_tests_of_anyio_use_the_fixtures(tmp_path: Path):
    test = """
import pytest

@pytest.mark.anyio
async def test_it(dynamodb):
    assert list(dynamodb.tables.all()) == []
"""
    conftest = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
    files = {"test_it.py": test, "conftest.py": conftest}
    assert_passed(run_suite(tmp_path, files, plugins=("anyio",)), 1)


def test_the_server_ends_with_a_run_that_is_killed(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(
        "import time\n"
        "def test_it(dynactor_server):\n"
        "    print('SERVER', dynactor_server.process_id, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen(
        suite_command("-s"),
        cwd=tmp_path,
        env=suite_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        line = next(line for line in run.stdout if "SERVER" in line)
        server = psutil.Process(int(line.split()[-1]))
        run.send_signal(signal.SIGKILL)
        run.wait()
        server.wait(30)


def test_a_run_that_only_collects_starts_no_server(tmp_path: Path):
    files = {"test_it.py": "def test_it(dynamodb): pass"}
    ini = "dynactor_options = --gsi-lag long\ndynactor_start = run"
    assert run_suite(tmp_path, files, "--collect-only", ini=ini).returncode == 0


def test_the_plugin_imports_nothing_but_itself():
    program = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import dynactor.pytest_plugin\n"
        "print(*(set(sys.modules) - before))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert set(told.stdout.split()) == {"dynactor", "dynactor.pytest_plugin"}


def test_the_environment_of_this_run_is_not_changed():
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ


MANY_TESTS = """
import pytest

@pytest.mark.parametrize("number", range(80))
def test_a_table(dynamodb, number):
    table = dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert table.scan()["Items"] == []
    table.put_item(Item={"Id": str(number)})
    table.delete()
"""


def test_many_tests_can_create_and_delete_the_same_table(tmp_path: Path):
    assert "80 passed" in run_suite(tmp_path, {"test_many.py": MANY_TESTS}).stdout
