"""Limits of access keys: requests, bytes and connections; temporary credentials count as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from anyio import fail_after

from dynactor.api.access.sender import Connection
from dynactor.api.http.key_limits import KeyLimits
from dynactor.api.http.protocol import Protocol
from dynactor.api.keys.access_keys import BadCredentialsFile, Limits, Profile, read_profiles
from dynactor.api.keys.session_tokens import TOKEN_HEADER, Session, SessionTokens
from dynactor.api.keys.signature import AccessKey, Signatures, authorization
from dynactor.model.errors import ThrottlingException
from tests.support.clients.clients import JSON_1_0
from tests.support.clients.raw_http import TO_FULL_LANE, RawAnswer, RawConnection, raw_connection
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, Gate, echo_server
from tests.support.databases.transacting import until
from tests.support.environment.hanging import HANG_SECONDS

KEY = AccessKey("AKIDAPP", "secret")
LATER_EPOCH_SECONDS = 4_000_000_000


class Limited:
    """The limits of the profile ``app``, and the time."""

    def __init__(
        self,
        requests_per_second: float | None = None,
        bytes_per_second: float | None = None,
        connections: int | None = None,
    ) -> None:
        self.now = 100.0
        self.tokens = SessionTokens(b"key of the tests")
        self.limits = KeyLimits(self.tokens, lambda: self.now)
        self.use(Limits(requests_per_second, bytes_per_second, connections))

    def use(self, limits: Limits) -> None:
        self.limits.replace(
            [Profile("app", KEY, limits=limits), Profile("free", AccessKey("AKIDFREE", "secret"))]
        )

    def begin(
        self,
        size_bytes: int = 0,
        answer_bytes: int = 0,
        connection: Connection | None = None,
        token: str = "",
        key: str = KEY.access_key_id,
    ) -> str:
        """A request; the text of its refusal, or an empty text."""
        headers = {TOKEN_HEADER: token} if token else {}
        try:
            use = self.limits.begin(key, headers, size_bytes, connection)
        except ThrottlingException as error:
            return error.message
        if use is not None:
            use.answered(answer_bytes)
        return ""


def test_requests_of_a_second_are_limited():
    limited = Limited(requests_per_second=3)
    assert [limited.begin() for _ in range(3)] == [""] * 3
    refusal = "Rate exceeded: the profile app may use 3 requests per second"
    assert limited.begin() == refusal
    assert limited.begin(key="AKIDFREE") == ""
    limited.now += 0.33
    assert [limited.begin(), limited.begin()] == ["", refusal]
    # Unused requests are kept for a second.
    limited.now += 60
    assert [limited.begin() for _ in range(4)] == ["", "", "", refusal]


def test_a_rate_below_one_request_per_second_admits_requests():
    limited = Limited(requests_per_second=0.1)
    assert limited.begin() == ""
    limited.now += 9
    assert limited.begin() != ""
    limited.now += 1.1
    assert limited.begin() == ""


def test_bytes_of_requests_and_answers_are_limited():
    limited = Limited(bytes_per_second=1_000)
    assert limited.begin(400, 3_000) == ""
    refusal = "Rate exceeded: the profile app may use 1,000 bytes per second"
    assert limited.begin() == refusal
    limited.now += 2.3
    assert limited.begin() == refusal
    limited.now += 0.2
    assert limited.begin() == ""


def test_a_refused_request_uses_nothing():
    limited = Limited(requests_per_second=1, bytes_per_second=10, connections=1)
    connection = Connection()
    assert limited.begin(30, connection=connection) == ""
    assert "1 requests per second" in limited.begin(1_000, connection=Connection())
    limited.now += 1.01
    assert "10 bytes per second" in limited.begin()
    limited.now += 1
    assert "1 connections" in limited.begin(1_000, connection=Connection())
    assert limited.begin(connection=connection) == ""


def test_connections_are_limited_until_they_end():
    limited = Limited(connections=2)
    first, second, third = Connection("::1"), Connection("::1"), Connection("::1")
    assert [limited.begin(connection=one) for one in (first, second, first)] == ["", "", ""]
    refusal = "Rate exceeded: the profile app may use 2 connections"
    assert limited.begin(connection=third) == refusal
    assert limited.begin() == ""
    # New limits do not forget the connections.
    limited.use(Limits(100.0, None, 2))
    assert limited.begin(connection=third) == refusal
    limited.limits.disconnected(first)
    assert [limited.begin(connection=one) for one in (third, first)] == ["", refusal]


def test_the_use_of_unchanged_limits_stays():
    limited = Limited(requests_per_second=1)
    limited.begin()
    limited.use(Limits(1))
    assert limited.begin() != ""
    limited.use(Limits(2))
    assert limited.begin() == ""
    assert limited.limits.has_limits
    limited.use(Limits())
    assert not limited.limits.has_limits


def test_temporary_credentials_count_as_the_key_of_their_user():
    limited = Limited(requests_per_second=3)
    sessions = [
        Session("ASIA1", LATER_EPOCH_SECONDS, user="app"),
        Session("ASIA2", LATER_EPOCH_SECONDS, user="app", role="reporting", name="work"),
        Session("ASIA3", LATER_EPOCH_SECONDS, user="free"),
    ]
    for session in sessions:
        token, _ = limited.tokens.issue(session)
        assert limited.begin(token=token, key=session.access_key_id) == ""
    assert [limited.begin() != "" for _ in range(2)] == [False, True]


def test_a_token_beside_a_key_of_a_profile_is_ignored():
    limited = Limited(requests_per_second=1)
    assert limited.begin(token="dummy", key="AKIDFREE") == ""
    assert [limited.begin(token="dummy") != "" for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    "setting", ["requests_per_second = 0", "bytes_per_second = inf", "connections = 1.5"]
)
def test_a_faulty_limit_is_refused(tmp_path: Path, setting: str):
    file = tmp_path / "keys"
    profile = f"[app]\naws_access_key_id = {KEY[0]}\naws_secret_access_key = {KEY[1]}\n"
    file.touch(0o600)
    file.write_text(f"{profile}requests_per_second = 2.5\nconnections = 7\n")
    (read,) = read_profiles(file)
    assert read.limits == Limits(2.5, None, 7)
    file.write_text(f"{profile}{setting}\n")
    name = setting.partition(" ")[0]
    with pytest.raises(BadCredentialsFile, match=rf"{name} of the profile \[app\] must be"):
        read_profiles(file)


# -- by a server ----------------------------------------------------------------------------


@asynccontextmanager
async def serving_with(gate: Gate, limits: Limits) -> AsyncIterator[str]:
    """A server with one key that has limits."""
    key_limits = KeyLimits(SessionTokens())
    key_limits.replace([Profile("app", KEY, limits=limits)])
    operations = (ECHO, gate.operation)
    signatures = Signatures((KEY,))
    protocol = Protocol(NO_DATABASE, operations, signatures=signatures, key_limits=key_limits)
    async with echo_server(protocol=protocol) as endpoint:
        yield endpoint


def send(connection: RawConnection, operation: str, *more: str) -> None:
    """Send a signed request."""
    headers = {
        "host": "127.0.0.1",
        "x-amz-target": f"DynamoDB_20120810.{operation}",
        "content-type": JSON_1_0,
    }
    headers |= authorization(KEY, "us-east-1", headers, b"{}", datetime.now(UTC))
    lines = [f"{name}: {text}" for name, text in headers.items()]
    head = "\r\n".join(["POST / HTTP/1.1", *lines, *more, "Content-Length: 2"])
    connection.send(f"{head}\r\n\r\n{{}}".encode())


async def ask(connection: RawConnection, *more: str) -> RawAnswer:
    send(connection, "Echo", *more)
    return await connection.answer()


@pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
async def test_a_connection_of_a_key_counts_until_it_ends(more: tuple[str, ...]):
    gate = Gate()
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(serving_with(gate, Limits(connections=2)))
        first, second, third = [
            await stack.enter_async_context(raw_connection(endpoint)) for _ in range(3)
        ]
        assert (await ask(first, *more)).status == 200
        send(second, "Wait", *more)
        await until(lambda: gate.waiting > 0)
        refused = await ask(third, *more)
        assert refused.status == 400
        assert refused.json["__type"].endswith("#ThrottlingException")
        assert (await ask(first)).status == 200
        # A client that leaves during its request leaves its place to others, too.
        second.reset_when_closed()
        second.writer.transport.abort()
        with fail_after(HANG_SECONDS):
            while (await ask(third, *more)).status != 200:
                pass
        gate.opened.set()
        assert (await ask(first)).status == 200


async def test_answers_count_as_bytes():
    async with (
        serving_with(Gate(), Limits(bytes_per_second=3)) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        # A body of 2 bytes leaves 1 of 3 bytes. The answer of 11 bytes is paid in 3 seconds.
        assert (await ask(connection)).body == b'{"Text":""}'
        assert (await ask(connection)).status == 400
