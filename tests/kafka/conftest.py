"""Provides a real Kafka broker for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.environment.maven_jars import NotFetched
from tests.support.kafka.kafka_broker import (
    GIVEN_BROKER,
    BrokerAddress,
    KafkaBroker,
    given_broker,
    running_broker,
)


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that the tests start once for the whole session."""
    try:
        with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
            yield broker
    except NotFetched as error:
        if given_broker() is not None:
            # Only the tests that need their own broker fail; the others use DYNACTOR_TEST_KAFKA.
            raise
        pytest.exit(f"No Kafka for the tests: {error}\nOr name one by {GIVEN_BROKER}=host:port")


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> BrokerAddress:
    """The broker in DYNACTOR_TEST_KAFKA, or the one that the tests start."""
    given = given_broker()
    return request.getfixturevalue("own_broker") if given is None else given


@pytest.fixture
def breakable_broker(own_broker: KafkaBroker) -> Iterator[KafkaBroker]:
    """A broker that the test may stop, kill or suspend; it is started again afterwards."""
    own_broker.ensure_running()
    try:
        yield own_broker
    finally:
        own_broker.ensure_running()


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], rounds: int | None) -> Callable[[str], None]:
    """Print a line of figures at once if ``--rounds`` is given."""

    def write(text: str) -> None:
        if rounds is not None:
            with capsys.disabled():
                print(text, flush=True)  # noqa: T201 - for who waits for it

    return write
