"""S129-S131 and A7: the sessions of the table SessionData, which end on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, TypeVar

import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.admin import ServerClock, server_with_clock
from tests.support.streams.streams import records_of
from tests.support.tables.tables import definition, global_index, local_index

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

TABLE = "SessionData"
TTL = "ExpirationTime"
BY_CREATION, BY_SESSION = "ByCreation", "BySession"
# Each line: user, session id, creation time, expiry time.
SESSIONS = (
    ("user1", "74686572652773", 1_571_820_360, 1_571_827_560),
    ("user2", "6e6f7468696e67", 1_571_820_180, 1_571_827_380),
    ("user3", "746f2073656520", 1_571_820_923, 1_571_828_123),
    ("user4", "68657265212121", 1_571_820_683, 1_571_827_883),
    ("user5", "6e6572642e2e2e", 1_571_820_743, 1_571_831_543),
)
EVERYBODY = {user for user, *_ in SESSIONS}
USER1_ENDS = 1_571_827_560
DELAY_SECONDS = 3_600
FIVE_YEARS_SECONDS = 5 * 365 * 24 * 60 * 60

T = TypeVar("T")


class Sessions:
    """The table SessionData on its own server, with two indexes, and the server's clock."""

    def __init__(self, wire: WireClient, streams: WireClient, clock: ServerClock) -> None:
        self.clock = clock
        self._wire = wire
        self._streams = streams
        created = wire(
            "CreateTable",
            definition(
                "UserName:S",
                "SessionId:S",
                "CreationTime:N",
                name=TABLE,
                indexes=(local_index(BY_CREATION, "UserName", "CreationTime"),),
                GlobalSecondaryIndexes=[global_index(BY_SESSION, "SessionId")],
                StreamSpecification={
                    "StreamEnabled": True,
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                },
            ),
        )
        self._arn = created["TableDescription"]["LatestStreamArn"]
        for session in SESSIONS:
            self.put(item_of(*session))
        specification = {"Enabled": True, "AttributeName": TTL}
        wire("UpdateTimeToLive", {"TableName": TABLE, "TimeToLiveSpecification": specification})
        enabled = {"TimeToLiveStatus": "ENABLED", "AttributeName": TTL}
        eventually(
            lambda: wire("DescribeTimeToLive", {"TableName": TABLE})["TimeToLiveDescription"],
            enabled,
        )

    def put(self, item: dict[str, Any]) -> None:
        self._wire("PutItem", {"TableName": TABLE, "Item": item})

    def get(self, user: str, session: str) -> dict[str, Any] | None:
        key = {"UserName": {"S": user}, "SessionId": {"S": session}}
        return self._wire("GetItem", {"TableName": TABLE, "Key": key}).get("Item")

    def users(self, index: str | None = None) -> set[str]:
        """The users of all items, or of all entries of an index."""
        place = {"IndexName": index} if index else {}
        items = self._wire("Scan", {"TableName": TABLE, **place})["Items"]
        return {item["UserName"]["S"] for item in items}

    def removals(self) -> list[dict[str, Any]]:
        """The stream's records of deletions in order."""
        records = records_of(self._streams, self._arn)
        return [record for record in records if record["eventName"] == "REMOVE"]


def item_of(user: str, session: str, created: int, expires: int) -> dict[str, Any]:
    return {
        "UserName": {"S": user},
        "SessionId": {"S": session},
        "CreationTime": {"N": str(created)},
        TTL: {"N": str(expires)},
        "SessionInfo": {"M": {"device": {"S": f"the device of {user}"}}},
    }


def eventually(ask: Callable[[], T], wanted: T) -> None:
    """Poll until the answer is as expected."""
    deadline = monotonic() + HANG_SECONDS
    while (answer := ask()) != wanted:
        assert monotonic() < deadline, f"it never came; the last answer: {answer}"


@contextmanager
def sessions_at(start: float | str, delay_seconds: float = 0) -> Iterator[Sessions]:
    """The table on a server at that time; it has one partition, so the stream is ordered."""
    options = ("--copy-messages", "--partitions-per-table", "1")
    with (
        server_with_clock(start, *options, "--ttl-delay-seconds", str(delay_seconds)) as served,
        closing(WireClient(served[0].endpoint)) as wire,
        closing(WireClient(served[0].endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        yield Sessions(wire, streams, served[1])


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    """The table, with a clock after the start of all sessions, and deletion without a delay."""
    with sessions_at(max(created for _, _, created, _ in SESSIONS)) as sessions:
        yield sessions


def test_s129_the_table_holds_five_sessions(sessions: Sessions):
    assert sessions.users() == EVERYBODY
    for session in SESSIONS:
        assert sessions.get(*session[:2]) == item_of(*session)


def test_s130_a_session_is_deleted_after_its_expiry_time_and_not_at_it(sessions: Sessions):
    user, session, created, expires = SESSIONS[0]
    assert (expires, expires - created) == (USER1_ENDS, 2 * 60 * 60)
    # Wait until user2, which expired earlier, is deleted; user1 must still exist.
    sessions.clock.set(now=USER1_ENDS)
    eventually(sessions.users, EVERYBODY - {"user2"})
    assert sessions.get(user, session) == item_of(*SESSIONS[0])
    sessions.clock.set(now=USER1_ENDS + 1)
    eventually(sessions.users, EVERYBODY - {"user1", "user2"})
    # The fifth session lasts for three hours, longer than the others.
    assert SESSIONS[4][3] - SESSIONS[4][2] == 3 * 60 * 60
    sessions.clock.set(now=SESSIONS[4][3])
    eventually(sessions.users, {"user5"})
    sessions.clock.step(1)
    eventually(sessions.users, set())


def test_s131_sessions_that_expired_more_than_five_years_ago_are_not_deleted():
    with sessions_at("now") as sessions:
        now = int(sessions.clock.now())
        sessions.put(item_of("user6", "7", now - 7_200, now - 1))
        sessions.clock.step(1)
        eventually(sessions.users, EVERYBODY)
        assert len(sessions.removals()) == 1


def test_a7_an_expired_session_can_be_read_until_its_deletion():
    with sessions_at(USER1_ENDS - 1_000, DELAY_SECONDS) as sessions:
        sessions.clock.set(now=USER1_ENDS + 1)
        assert sessions.get(*SESSIONS[0][:2]) == item_of(*SESSIONS[0])
        assert sessions.users() == EVERYBODY
        sessions.clock.set(now=USER1_ENDS + DELAY_SECONDS - 1)
        eventually(sessions.users, EVERYBODY - {"user2"})
        sessions.clock.step(2)
        eventually(sessions.users, EVERYBODY - {"user1", "user2"})


def test_a7_an_expired_session_is_deleted_by_the_service_in_table_and_indexes(sessions: Sessions):
    for index in (BY_CREATION, BY_SESSION):
        eventually(lambda index=index: sessions.users(index), EVERYBODY)
    sessions.clock.set(now=USER1_ENDS + 1)
    left = EVERYBODY - {"user1", "user2"}
    for index in (None, BY_CREATION, BY_SESSION):
        eventually(lambda index=index: sessions.users(index), left)
    records = {
        record["dynamodb"]["Keys"]["UserName"]["S"]: record for record in sessions.removals()
    }
    assert records.keys() == {"user1", "user2"}
    for session in SESSIONS[:2]:
        record = records[session[0]]
        assert record["userIdentity"] == {
            "Type": "Service",
            "PrincipalId": "dynamodb.amazonaws.com",
        }
        assert record["dynamodb"]["OldImage"] == item_of(*session)
        assert "NewImage" not in record["dynamodb"]
        assert record["dynamodb"]["ApproximateCreationDateTime"] == USER1_ENDS + 1


def test_a7_sessions_are_deleted_in_the_order_of_their_expiry_times(sessions: Sessions):
    left = set(EVERYBODY)
    for user, expires in sorted(((s[0], s[3]) for s in SESSIONS), key=lambda each: each[1]):
        sessions.clock.set(now=expires + 1)
        left.remove(user)
        eventually(sessions.users, set(left))
    order = [record["dynamodb"]["Keys"]["UserName"]["S"] for record in sessions.removals()]
    assert order == ["user2", "user1", "user4", "user3", "user5"]


def test_a7_only_a_number_within_the_last_five_years_expires_a_session():
    now = 2_000_000_000
    values: dict[str, dict[str, str]] = {
        "past": {"N": str(now - 1)},
        "half a second past": {"N": f"{now - 1}.5"},
        "a second short of five years": {"N": str(now - FIVE_YEARS_SECONDS + 1)},
        "now": {"N": str(now)},
        "half a second ahead": {"N": f"{now}.5"},
        "five years": {"N": str(now - FIVE_YEARS_SECONDS)},
        "zero": {"N": "0"},
        "milliseconds": {"N": f"{now - 1}000"},
        "text": {"S": str(now - 1)},
    }
    ended = {"past", "half a second past", "a second short of five years"}
    with sessions_at(now) as sessions:
        for user, value in values.items():
            sessions.put({**item_of(user, "1", 0, 0), TTL: value})
        no_value = item_of("no value", "1", 0, 0)
        del no_value[TTL]
        sessions.put(no_value)
        stay = EVERYBODY | (values.keys() - ended) | {"no value"}
        eventually(sessions.users, stay)
        # Wait for another sweep, which must delete only this new item.
        sessions.put(item_of("marker", "1", 0, now - 1))
        eventually(lambda: len(sessions.removals()), len(ended) + 1)
        assert sessions.users() == stay
