import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, MailboxClosed, Message
from dynactor.actors.runtime.supervisor import RESTARTS, Supervisor
from dynactor.model.errors import InternalServerError
from dynactor.storage.store import Fenced, TakenOver, Unavailable
from tests.support.environment.simulated_loop import simulated


class Order(Message[str], frozen=True):
    what: str


async def cancelled_by_another() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def beside_a_child() -> None:
    async with anyio.create_task_group() as task_group:
        task_group.start_soon(anyio.sleep_forever)
        await anyio.lowlevel.checkpoint()
        await cancelled_by_another()


STRAYS = [cancelled_by_another, beside_a_child]


class Waiter:
    """An actor that replies with the message's text, and crashes at one message."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mailbox = Mailbox(100)
        self.in_progress: list[Envelope] = []
        self.starts = 0

    async def run(self) -> None:
        self.starts += 1
        while batch := await self.mailbox.take(1, 1):
            self.in_progress = batch
            if batch[0].message.what == "crash":
                raise RuntimeError("a bug")
            if batch[0].message.what == "load":
                # If each of these frequent restarts counted as a crash, the supervisor would give
                # up.
                raise InternalServerError("not loaded") from Unavailable("no connection")
            batch[0].answer(batch[0].message.what)
            self.in_progress = []


async def test_a_crash_is_answered_and_the_actor_continues():
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        waiter = Waiter("one")
        supervisor.start(waiter)
        crashed = waiter.mailbox.put_nowait(Order("crash"))
        after = waiter.mailbox.put_nowait(Order("soup"))
        with pytest.raises(InternalServerError):
            await crashed
        assert await after == "soup"
        assert waiter.starts == 2
        await supervisor.stop(waiter)


async def test_a_crash_does_not_affect_the_siblings():
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        one, two = Waiter("one"), Waiter("two")
        supervisor.start(one)
        supervisor.start(two)
        crashed = one.mailbox.put_nowait(Order("crash"))
        with pytest.raises(InternalServerError):
            await crashed
        assert await two.mailbox.put_nowait(Order("soup")) == "soup"
        assert two.starts == 1
        await supervisor.stop(one)
        await supervisor.stop(two)


def fenced() -> Exception:
    return Fenced("the guard does not have its value")


def fenced_reply() -> Exception:
    error = InternalServerError("Nothing was written")
    error.__cause__ = fenced()
    return error


def fenced_child() -> Exception:
    return ExceptionGroup("children", [ExceptionGroup("grandchildren", [fenced()])])


def taken_over() -> Exception:
    return TakenOver("another server has taken over the database")


@pytest.mark.parametrize("refusal", [fenced, fenced_reply, fenced_child, taken_over])
async def test_a_fenced_actor_is_not_restarted(refusal: Callable[[], Exception]):
    class Replaced(Waiter):
        async def run(self) -> None:
            self.starts += 1
            self.in_progress = await self.mailbox.take(1, 1)
            raise refusal()

    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        replaced, other = Replaced("one"), Waiter("two")
        orders = [replaced.mailbox.put_nowait(Order("soup")) for _ in range(2)]
        supervisor.start(replaced)
        supervisor.start(other)
        for order in orders:
            with pytest.raises(InternalServerError) as refused:
                await order
            assert is_fenced(refused.value)
        with pytest.raises(MailboxClosed):
            replaced.mailbox.put_nowait(Order("soup"))
        assert replaced.starts == 1
        assert await other.mailbox.put_nowait(Order("soup")) == "soup"
        await supervisor.stop(other)


async def test_endless_work_ends_if_it_is_fenced():
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        raise fenced()

    async with anyio.create_task_group() as task_group:
        Supervisor(task_group).keep_in_background(work)
    assert starts == 1


@pytest.mark.parametrize("stray", STRAYS)
async def test_a_canceled_future_that_an_actor_awaits_is_a_crash(
    stray: Callable[[], Awaitable[None]],
):
    class Confused(Waiter):
        async def run(self) -> None:
            if self.starts == 0:
                self.starts = 1
                self.in_progress = await self.mailbox.take(1, 1)
                await stray()
            else:
                await super().run()

    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        confused, sibling = Confused("one"), Waiter("two")
        supervisor.start(confused)
        supervisor.start(sibling)
        with pytest.raises(InternalServerError):
            await confused.mailbox.put_nowait(Order("soup"))
        assert await confused.mailbox.put_nowait(Order("soup")) == "soup"
        assert await sibling.mailbox.put_nowait(Order("soup")) == "soup"
        await supervisor.stop(confused)
        await supervisor.stop(sibling)


@pytest.mark.parametrize("stray", STRAYS)
async def test_a_cancellation_of_what_work_aside_waits_for_ends_that_work_alone(
    stray: Callable[[], Awaitable[None]],
):
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        waiter = Waiter("one")
        supervisor.start(waiter)
        supervisor.run_in_background(stray)
        await anyio.wait_all_tasks_blocked()
        assert await waiter.mailbox.put_nowait(Order("soup")) == "soup"
        await supervisor.stop(waiter)


async def test_actors_are_canceled_with_their_task_group():
    with anyio.fail_after(10):
        async with anyio.create_task_group() as task_group:
            waiter = Waiter("one")
            Supervisor(task_group).start(waiter)
            await anyio.wait_all_tasks_blocked()
            task_group.cancel_scope.cancel()
    assert waiter.starts == 1


async def test_an_actor_that_crashes_repeatedly_is_abandoned_and_refuses_messages():
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        waiter = Waiter("one")
        supervisor.start(waiter)
        orders = [waiter.mailbox.put_nowait(Order("crash")) for _ in range(RESTARTS + 3)]
        for order in orders:
            with pytest.raises(InternalServerError):
                await order
        with pytest.raises(MailboxClosed):
            waiter.mailbox.put_nowait(Order("soup"))


@simulated
async def test_an_actor_whose_store_is_unavailable_is_restarted_without_limit():
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        waiter = Waiter("one")
        supervisor.start(waiter)
        for _ in range(RESTARTS * 3):
            with pytest.raises(InternalServerError):
                await waiter.mailbox.put_nowait(Order("load"))
        assert await waiter.mailbox.put_nowait(Order("soup")) == "soup"
        assert waiter.starts == RESTARTS * 3 + 1
        await supervisor.stop(waiter)


async def test_stopping_answers_accepted_messages():
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        waiter = Waiter("one")
        supervisor.start(waiter)
        replies = [waiter.mailbox.put_nowait(Order(str(at))) for at in range(10)]
        await supervisor.stop(waiter)
        assert [await reply for reply in replies] == [str(at) for at in range(10)]


async def test_background_work_does_not_delay_stopping():
    begun = anyio.Event()

    async def work(ended: list[bool]) -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    ended: list[bool] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as task_group:
            supervisor = Supervisor(task_group)
            supervisor.run_in_background(work, ended)
            await begun.wait()
            # The second work has not started when it is canceled.
            supervisor.run_in_background(work, ended)
            supervisor.cancel_background()
    assert ended == [True, True]


@simulated
async def test_endless_work_is_restarted_when_it_fails():
    begun = 0
    begun_again = anyio.Event()

    async def work(strayed: Callable[[], Awaitable[None]]) -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise RuntimeError("a bug")
        if begun == 2:
            await strayed()
        begun_again.set()
        await anyio.sleep_forever()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as task_group:
            supervisor = Supervisor(task_group)
            supervisor.keep_in_background(work, cancelled_by_another)
            await begun_again.wait()
            supervisor.cancel_background()
    assert begun == 3
    # The work restarted twice, each time after a pause of 5 s.
    assert asyncio.get_running_loop().time() == 10
