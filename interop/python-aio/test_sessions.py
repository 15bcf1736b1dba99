"""`azure.servicebus.aio`: sessions, accepted by id or as the next one, with state, renewal and loss."""

from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus import NEXT_AVAILABLE_SESSION
from azure.servicebus.exceptions import OperationTimeoutError, SessionCannotBeLockedError, SessionLockLostError

from aio_support import Queue, eventually, receive
from support import DEAD_LETTER, SDK_VERSION, body_of, message


def of(session, *bodies):
    return [message(body, session_id=session) for body in bodies]


def bodies(received):
    return [body_of(one).decode() for one in received]


async def test_a_session_is_accepted_by_id_and_comes_in_order_to_its_holder_alone(own_broker):
    async with Queue(own_broker, "sessions", retry_total=0) as sessions:
        await sessions.send(*of("a", "one"), *of("b", "of another"), *of("a", "two", "three"))
        async with sessions.receiver(session_id="a") as holder:
            assert holder.session.session_id == "a"
            received = await receive(holder, 3)
            assert bodies(received) == ["one", "two", "three"]
            with pytest.raises(SessionCannotBeLockedError):
                await sessions.receiver(session_id="a").__aenter__()
            for one in received:
                await holder.complete_message(one)
        async with sessions.receiver(session_id="b") as holder:
            assert bodies(await receive(holder)) == ["of another"]


async def test_the_next_session_is_the_one_whose_first_message_is_oldest(own_broker):
    async with Queue(own_broker, "sessions", retry_total=0) as sessions:
        await sessions.send(*of("first", "one"), *of("second", "two"))
        for expected in ("first", "second"):
            async with sessions.receiver(session_id=NEXT_AVAILABLE_SESSION) as holder:
                assert holder.session.session_id == expected
                await holder.complete_message((await receive(holder))[0])
        with pytest.raises(OperationTimeoutError):
            await sessions.receiver(session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1).__aenter__()


async def test_a_state_is_binary_and_survives_its_holder(own_broker):
    state = bytes(range(256))
    async with Queue(own_broker, "sessions") as sessions:
        async with sessions.receiver(session_id="a") as holder:
            assert await holder.session.get_state() is None
            await holder.session.set_state(state)
        async with sessions.receiver(session_id="a") as holder:
            assert await holder.session.get_state() == state
            await holder.session.set_state(None)
            assert await holder.session.get_state() is None


async def test_a_renewed_session_is_held_longer_than_its_lock(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one"))
        (received,) = await receive(holder)
        own_broker.advance("PT4M")
        first = holder.session.locked_until_utc
        assert await holder.session.renew_lock() >= first - timedelta(seconds=1)
        own_broker.advance("PT4M")
        await holder.complete_message(received)

        async def is_empty():
            return await holder.peek_messages(1, sequence_number=1) == []

        await eventually(is_empty, "the removal of the completed message")


async def test_a_session_that_is_not_renewed_is_lost_and_its_messages_come_again(own_broker):
    async with Queue(own_broker, "sessions", retry_total=0) as sessions:
        await sessions.send(*of("a", "one"))
        async with sessions.receiver(session_id="a") as holder:
            (received,) = await receive(holder)
            own_broker.advance("PT5M")
            with pytest.raises(SessionLockLostError):
                await holder.session.renew_lock()
        async with sessions.receiver(session_id="a") as holder:
            (again,) = await receive(holder)
            assert again.sequence_number == received.sequence_number
            assert again.delivery_count == 1


async def test_an_abandoned_message_comes_before_those_behind_it(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one", "two"))
        await holder.abandon_message((await receive(holder))[0])
        received = await receive(holder, 2)
        assert bodies(received) == ["one", "two"]
        assert received[0].delivery_count == 1


async def test_deferred_and_peeked_messages_are_those_of_the_session(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one"), *of("b", "of another"))
        (received,) = await receive(holder)
        await holder.defer_message(received)
        assert bodies(await holder.peek_messages(10, sequence_number=1)) == ["one"]
        (deferred,) = await holder.receive_deferred_messages(received.sequence_number)
        await holder.complete_message(deferred)
        assert await holder.peek_messages(10, sequence_number=1) == []


async def test_dead_letters_are_received_without_a_session(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one"))
        await holder.dead_letter_message((await receive(holder))[0], reason="why")
        (dead,) = await sessions.take(sub_queue=DEAD_LETTER)
        assert (dead.session_id, dead.dead_letter_reason) == ("a", "why")


@pytest.mark.parametrize("session", [NEXT_AVAILABLE_SESSION, "a"], ids=["next", "by_id"])
async def test_an_iterator_gets_every_message_of_a_session_and_ends(own_broker, session):
    async with Queue(own_broker, "sessions") as sessions:
        await sessions.send(*of("a", "one", "two"), *of("b", "of another"), *of("a", "three"))
        got = []
        async with sessions.receiver(session_id=session, max_wait_time=1) as holder:
            async for one in holder:
                got.append(one)
                await holder.complete_message(one)
        assert bodies(got) == ["one", "two", "three"]


if SDK_VERSION != "7.14.3":

    async def test_sessions_with_messages_or_state_are_listed(own_broker):
        async with Queue(own_broker, "sessions") as sessions:
            await sessions.send(*of("with messages", "one", "two"))
            before = datetime.now(timezone.utc) - timedelta(minutes=1)
            async with sessions.receiver(session_id="with state") as holder:
                await holder.session.set_state(b"here")

            async def listed(**options):
                return [one async for one in sessions.client.list_queue_sessions("sessions", **options)]

            assert sorted(await listed()) == ["with messages", "with state"]
            assert await listed(state_updated_after=before) == ["with state"]
