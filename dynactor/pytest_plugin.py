"""The pytest plugin: a DynamoDB server for a run of tests.

pytest loads this module in every run, wherever dynactor is installed. So it imports the standard
library and pytest alone, and does nothing until a test uses one of the fixtures:

``dynamodb_endpoint``
    The server's address. One server runs for the whole run, or for each worker of xdist.
``dynamodb``
    boto3's resource for an empty server. Its client is ``dynamodb.meta.client``.
``dynamodb_client``
    boto3's client for an empty server.
``dynactor_server``
    An empty server, and control of its clock, lag, throttling, faults, snapshots and reset.

docs/TESTING.md describes the options.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from dynactor.api.testing.server import Server
    from dynactor.api.testing.suite_run import SuiteRun

_SCOPES: Final = ("function", "class", "module", "package", "session")
_STARTS: Final = ("first-use", "run")
_FIXTURES: Final = ("dynamodb_endpoint", "dynamodb", "dynamodb_client", "dynactor_server")

_RUN: Final = pytest.StashKey["SuiteRun"]()
_LOGGED: Final = pytest.StashKey[int]()
_RESOURCE: Final = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for pyproject.toml and pytest.ini."""
    parser.addini(
        "dynactor_options", "options of `dynactor serve` for dynactor's fixtures", type="args"
    )
    parser.addini("dynactor_region", "region of dynactor's fixtures", default="us-east-1")
    parser.addini(
        "dynactor_scope",
        "how long dynactor's fixtures keep their data: function, class, module, package or session",
        default="function",
    )
    parser.addini("dynactor_fixture_prefix", "prefix of the names of dynactor's fixtures")
    parser.addini(
        "dynactor_start",
        "when dynactor's server starts: at its first use, or run: before the tests are imported",
        default="first-use",
    )
    parser.addini(
        "dynactor_allow_aws",
        "let requests to AWS through; by default dynactor's plugin refuses them",
        type="bool",
        default=False,
    )


@pytest.hookimpl(trylast=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the server before test modules are imported, if configured."""
    # With xdist, each worker starts a server, and the controlling process starts none.
    known = early_config.known_args_namespace
    is_controller = (
        bool(getattr(known, "numprocesses", None) or getattr(known, "tx", None))
        and "PYTEST_XDIST_WORKER" not in os.environ
    )
    shows_only = getattr(known, "collectonly", False) or getattr(known, "help", False)
    if early_config.getini("dynactor_start") == "run" and not is_controller and not shows_only:
        _run_of(early_config).server()


def pytest_configure(config: pytest.Config) -> None:
    """Register the fixtures under their names."""
    _one_of(config, "dynactor_scope", _SCOPES)
    _one_of(config, "dynactor_start", _STARTS)
    prefix = config.getini("dynactor_fixture_prefix")
    config.pluginmanager.register(_fixtures(prefix), "dynactor_fixtures")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server, and undo the changes of the environment."""
    if _RESOURCE in config.stash:
        config.stash[_RESOURCE].meta.client.close()
    run = config.stash.get(_RUN, None)
    if run is not None:
        run.end()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the server in the background if any of the tests use it."""
    config = session.config
    if config.getoption("collectonly", default=False):
        return
    names = _names(config)
    if any(names.intersection(getattr(item, "fixturenames", ())) for item in session.items):
        _run_of(config).begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record the size of the server's log before a test."""
    run = item.config.stash.get(_RUN, None)
    item.stash[_LOGGED] = 0 if run is None else len(run.log)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the server's log of a test that failed."""
    report = yield
    run = item.config.stash.get(_RUN, None)
    if report.failed and run is not None:
        log = run.log[item.stash.get(_LOGGED, 0) :].strip()
        if log:
            report.sections.append(("Log of the dynactor server", log))
    return report


def _one_of(config: pytest.Config, name: str, values: Sequence[str]) -> None:
    value = config.getini(name)
    if value not in values:
        raise pytest.UsageError(f"{name} is {value!r}: give one of {', '.join(values)}")


def _names(config: pytest.Config) -> frozenset[str]:
    prefix = config.getini("dynactor_fixture_prefix")
    return frozenset(f"{prefix}{name}" for name in _FIXTURES)


def _run_of(config: pytest.Config) -> SuiteRun:
    """The server of the test run, which may not be started yet."""
    if _RUN not in config.stash:
        from dynactor.api.testing.suite_run import SuiteRun  # noqa: PLC0415

        config.stash[_RUN] = SuiteRun(
            config.getini("dynactor_options"),
            config.getini("dynactor_region"),
            allow_aws=config.getini("dynactor_allow_aws"),
        )
    return config.stash[_RUN]


def _server(config: pytest.Config) -> Server:
    """The started server. If it does not start, the test fails with its message and log."""
    from dynactor.api.testing.server_process import ServerError  # noqa: PLC0415

    try:
        return _run_of(config).server()
    except ServerError as error:
        pytest.fail(str(error), pytrace=False)


def _resource(config: pytest.Config, fixture: str) -> Any:
    """boto3's resource, created once in a run, which takes 20 ms."""
    if _RESOURCE not in config.stash:
        try:
            import boto3  # noqa: PLC0415
        except ImportError:
            pytest.fail(
                f"The fixture {fixture} needs boto3: pip install 'dynactor[pytest]'", pytrace=False
            )
        arguments = _server(config).client_arguments
        config.stash[_RESOURCE] = boto3.session.Session().resource("dynamodb", **arguments)
    return config.stash[_RESOURCE]


def _fixtures(prefix: str) -> ModuleType:
    """The fixtures, by name with the prefix."""

    def scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest's names
        return config.getini("dynactor_scope")

    @pytest.fixture(scope="session", name=f"{prefix}dynamodb_endpoint")
    def dynamodb_endpoint(pytestconfig: pytest.Config) -> str:
        """The address of a DynamoDB server that lasts for the whole run."""
        return _server(pytestconfig).endpoint

    @pytest.fixture(scope=scope, name=f"{prefix}dynactor_server")
    def dynactor_server(pytestconfig: pytest.Config) -> Server:
        """An empty DynamoDB server: its clock, settings, faults and snapshots."""
        server = _server(pytestconfig)
        server.reset()
        return server

    @pytest.fixture(scope=scope, name=f"{prefix}dynamodb")
    def dynamodb(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Any:
        """boto3's resource of an empty DynamoDB server."""
        request.getfixturevalue(f"{prefix}dynactor_server")
        return _resource(pytestconfig, f"{prefix}dynamodb")

    @pytest.fixture(scope=scope, name=f"{prefix}dynamodb_client")
    def dynamodb_client(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Any:
        """boto3's client of an empty DynamoDB server."""
        request.getfixturevalue(f"{prefix}dynactor_server")
        return _resource(pytestconfig, f"{prefix}dynamodb_client").meta.client

    # pytest looks for fixtures only in modules and classes.
    module = ModuleType("dynactor_fixtures")
    for fixture in (dynamodb_endpoint, dynactor_server, dynamodb, dynamodb_client):
        setattr(module, fixture.__name__, fixture)
    return module
