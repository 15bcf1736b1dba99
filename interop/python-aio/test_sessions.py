"""`azure.servicebus.aio`: sessions, accepted by id or as the next one, with state, renewal and loss."""

import copy
from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus import NEXT_AVAILABLE_SESSION
from azure.servicebus.exceptions import (
    MessageLockLostError,
    OperationTimeoutError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

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


async def test_ids_that_differ_in_letter_case_are_one_session(own_broker):
    ids = ["Order-1", "ORDER-1", "order-1"]
    async with Queue(own_broker, "sessions", retry_total=0) as sessions:
        for one in ids:
            await sessions.send(*of(one, one))
        async with sessions.receiver(session_id="oRDER-1") as holder:
            assert holder.session.session_id == "oRDER-1"
            received = await receive(holder, 3)
            assert [one.session_id for one in received] == ids
            await holder.session.set_state(b"known")
            with pytest.raises(SessionCannotBeLockedError):
                await sessions.receiver(session_id=ids[0]).__aenter__()
            for one in received:
                await holder.complete_message(one)
        async with sessions.receiver(session_id=ids[1]) as holder:
            assert await holder.session.get_state() == b"known"


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
            for nothing in (None, b""):
                assert await holder.session.get_state() == state
                await holder.session.set_state(nothing)
                assert await holder.session.get_state() is None
                await holder.session.set_state(state)


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


async def test_a_message_of_a_session_is_locked_without_an_end(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one"))
        (received,) = await receive(holder)
        (peeked,) = await holder.peek_messages(1, sequence_number=1)
        for one in (received, peeked):
            # The end of the year 9999; the SDK shows no lock of a message that came by a session.
            assert one.raw_amqp_message.annotations[b"x-opt-locked-until"] == 253402300799999
            assert one.locked_until_utc is None
        with pytest.raises(TypeError, match="renew the session lock"):
            await holder.renew_message_lock(received)
        await holder.complete_message(received)


async def test_a_second_settlement_is_a_lost_lock_and_the_session_goes_on(own_broker):
    async with Queue(own_broker, "sessions") as sessions, sessions.receiver(session_id="a") as holder:
        await sessions.send(*of("a", "one", "two"))
        (received,) = await receive(holder)
        await holder.defer_message(received)
        # Of deferred messages this SDK asks the broker whenever they are settled.
        (deferred,) = await holder.receive_deferred_messages(received.sequence_number)
        other = copy.copy(deferred)
        await holder.complete_message(deferred)
        with pytest.raises(MessageLockLostError):
            await holder.complete_message(other)
        (second,) = await receive(holder)
        assert bodies([second]) == ["two"]
        await holder.complete_message(second)
        await holder.session.set_state(b"still mine")


async def test_an_idle_receiver_of_a_session_ends_half_a_second_after_its_lock(own_broker):
    own_broker.freeze()
    async with Queue(own_broker, "sessions", retry_total=0) as sessions, sessions.receiver(session_id="a"):
        own_broker.advance("PT5M0.4S")
        with pytest.raises(SessionCannotBeLockedError):
            await sessions.receiver(session_id="a").__aenter__()
        own_broker.advance("PT0.1S")
        async with sessions.receiver(session_id="a") as second:
            assert second.session.session_id == "a"


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
