"""Wrong secrets of the console delay their own address, and lock nobody out."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from dynactor.api.admin.change_rules import ChangeRefusal
from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.console.sign_in import SignIn
from dynactor.api.console.wrong_secrets import DELAY_SECONDS, MOST_TRIES, MOST_WAITING

SECRET = "0123456789abcdef"
WRONG = "0" * 16
THERE = "192.0.2.7"


class Waiting:
    """Sleeps that end when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeping: list[asyncio.Future[None]] = []

    async def sleep(self, seconds: float) -> None:
        assert seconds == DELAY_SECONDS
        self.sleeping.append(asyncio.get_running_loop().create_future())
        await self.sleeping[-1]


class Door:
    """Tries to sign in from addresses."""

    def __init__(self) -> None:
        self.waiting = Waiting()
        rules = CallerRules(SECRET)
        now = lambda: self.waiting.now  # noqa: E731
        self._sign_in = SignIn(rules, checks_keys=False, now=now, sleep=self.waiting.sleep)

    async def enter(self, address: str, secret: str = SECRET) -> HTTPStatus:
        request = make_mocked_request("POST", "/console/sign-in", headers={"Host": "a:1"})
        done = await self._sign_in.sign_in(request.clone(remote=address), secret)
        assert isinstance(done, ChangeRefusal | web.Response)
        return HTTPStatus(done.status)

    async def enter_at_once(self, address: str) -> HTTPStatus:
        """Enter without a delay. A delayed try would wait for the test forever."""
        trying = asyncio.create_task(self.enter(address))
        await asyncio.sleep(0)
        assert not self.waiting.sleeping
        return await trying

    async def fail(self, address: str, tries: int = MOST_TRIES) -> None:
        for _ in range(tries):
            assert await self.enter(address, WRONG) == HTTPStatus.UNAUTHORIZED


async def test_the_right_secret_comes_in_after_a_delay():
    door = Door()
    await door.fail(THERE)
    trying = [asyncio.create_task(door.enter(THERE, each)) for each in (SECRET, WRONG)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in trying)
    for sleeping in door.waiting.sleeping:
        sleeping.set_result(None)
    assert await asyncio.gather(*trying) == [HTTPStatus.NO_CONTENT, HTTPStatus.UNAUTHORIZED]


async def test_other_addresses_do_not_wait():
    door = Door()
    await door.fail(THERE)
    for address in ("192.0.2.8", "2001:db8::1"):
        assert await door.enter_at_once(address) == HTTPStatus.NO_CONTENT


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.7", "::ffff:192.0.2.7", True),
    ],
)
async def test_addresses_that_one_host_may_choose_count_together(
    first: str, second: str, *, is_same: bool
):
    door = Door()
    await door.fail(first)
    trying = asyncio.create_task(door.enter(second))
    await asyncio.sleep(0)
    assert bool(door.waiting.sleeping) == is_same
    for sleeping in door.waiting.sleeping:
        sleeping.set_result(None)
    assert await trying == HTTPStatus.NO_CONTENT


async def test_the_delay_ends_a_minute_after_the_wrong_secrets():
    door = Door()
    await door.fail(THERE)
    door.waiting.now = 60
    assert await door.enter_at_once(THERE) == HTTPStatus.NO_CONTENT


async def test_few_tries_of_an_address_wait_at_a_time():
    door = Door()
    await door.fail(THERE)
    trying = [asyncio.create_task(door.enter(THERE, WRONG)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    assert len(door.waiting.sleeping) == MOST_WAITING
    refused = asyncio.create_task(door.enter(THERE))
    await asyncio.sleep(0)
    assert len(door.waiting.sleeping) == MOST_WAITING
    assert await refused == HTTPStatus.TOO_MANY_REQUESTS
    for sleeping in door.waiting.sleeping:
        sleeping.set_result(None)
    assert set(await asyncio.gather(*trying)) == {HTTPStatus.UNAUTHORIZED}
