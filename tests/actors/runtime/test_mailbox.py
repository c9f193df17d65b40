import asyncio

import pytest

from dynactor.actors.runtime.mailbox import Mailbox, MailboxClosed, MailboxFull, Message


class Note(Message[str], frozen=True):
    text: str


async def test_a_batch_has_all_waiting_messages_in_order():
    mailbox = Mailbox(10)
    for text in "abc":
        mailbox.put_nowait(Note(text))
    batch = await mailbox.take(10, 1000)
    assert [envelope.message.text for envelope in batch] == ["a", "b", "c"]


async def test_a_batch_is_bounded_in_messages_and_bytes():
    mailbox = Mailbox(10)
    for text in "abcde":
        mailbox.put_nowait(Note(text), size_bytes=40)
    assert len(await mailbox.take(2, 1000)) == 2
    assert len(await mailbox.take(10, 41)) == 2
    assert len(await mailbox.take(10, 1)) == 1


async def test_a_full_mailbox_refuses_a_message_at_once():
    mailbox = Mailbox(1)
    mailbox.put_nowait(Note("a"))
    with pytest.raises(MailboxFull):
        mailbox.put_nowait(Note("b"))


async def test_a_sender_that_found_a_mailbox_full_is_notified_when_it_has_space():
    mailbox = Mailbox(2)
    assert mailbox.when_not_full().done()
    for text in "ab":
        mailbox.put_nowait(Note(text))
    waiting = [mailbox.when_not_full(), mailbox.when_not_full()]
    assert not any(each.done() for each in waiting)
    await mailbox.take(1, 1000)
    assert all(each.done() for each in waiting)
    mailbox.put_nowait(Note("c"))
    drained = mailbox.when_not_full()
    mailbox.drain()
    assert drained.done()


async def test_a_wait_for_space_ends_when_the_mailbox_is_closed():
    mailbox = Mailbox(1)
    mailbox.put_nowait(Note("a"))
    waiting, cancelled = mailbox.when_not_full(), mailbox.when_not_full()
    cancelled.cancel()
    mailbox.close()
    assert waiting.done()
    assert mailbox.when_not_full().done()


async def test_a_closed_mailbox_drains_and_then_returns_no_batch():
    mailbox = Mailbox(10)
    mailbox.put_nowait(Note("a"))
    mailbox.close()
    with pytest.raises(MailboxClosed):
        mailbox.put_nowait(Note("b"))
    assert len(await mailbox.take(10, 1000)) == 1
    assert await mailbox.take(10, 1000) == []


async def test_a_receiver_keeps_waiting_if_the_message_that_woke_it_was_withdrawn():
    mailbox = Mailbox(10)
    taker = asyncio.ensure_future(mailbox.take(10, 1000))
    await asyncio.sleep(0)
    mailbox.put_nowait(Note("a"))
    mailbox.drain()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not taker.done()
    mailbox.put_nowait(Note("b"))
    assert [envelope.message.text for envelope in await taker] == ["b"]


async def test_closing_a_mailbox_wakes_the_waiting_receiver():
    mailbox = Mailbox(10)
    taker = asyncio.ensure_future(mailbox.take(10, 1000))
    await asyncio.sleep(0)
    mailbox.close()
    assert await taker == []


async def test_a_reply_without_a_waiter_is_not_an_error():
    mailbox = Mailbox(10)
    reply = mailbox.put_nowait(Note("a"))
    reply.cancel()
    (envelope,) = await mailbox.take(10, 1000)
    envelope.answer("too late")
    envelope.refuse(ValueError())
    assert reply.cancelled()


async def test_a_copied_message_is_an_equal_but_different_object():
    mailbox = Mailbox(10, copy_messages=True)
    note = Note("a")
    mailbox.put_nowait(note)
    (envelope,) = await mailbox.take(10, 1000)
    assert envelope.message == note
    assert envelope.message is not note


async def test_waiting_messages_can_be_moved_to_another_mailbox_and_answered_there():
    first, second = Mailbox(10), Mailbox(1)
    replies = [first.put_nowait(Note(text)) for text in "abc"]
    taking = asyncio.ensure_future(second.take(10, 1000))
    await asyncio.sleep(0)

    for envelope in first.drain():
        second.give(envelope)

    assert len(first) == 0
    batch = await taking
    assert [envelope.message.text for envelope in batch] == ["a", "b", "c"]
    for envelope in batch:
        envelope.answer(envelope.message.text.upper())
    assert await asyncio.gather(*replies) == ["A", "B", "C"]
