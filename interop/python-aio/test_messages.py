"""`azure.servicebus.aio`: sending, receiving, settling, scheduling, and what becomes of messages by themselves."""

import asyncio
import os
import re
from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus import ServiceBusMessageState
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.servicebus.exceptions import (
    MessageAlreadySettled,
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

from aio_support import Queue, eventually, receive
from support import AWAITS_SETTLEMENT, DEAD_LETTER, body_of, message


def ids(messages):
    return [one.message_id for one in messages]


async def test_a_sent_message_arrives_with_its_body(own_broker):
    async with Queue(own_broker) as orders:
        sent = message("hello")
        await orders.send(sent)
        (received,) = await orders.take()
        assert (received.message_id, body_of(received)) == (sent.message_id, b"hello")


async def test_a_list_of_messages_arrives_whole(own_broker):
    sent = [message() for _ in range(5)]
    async with Queue(own_broker) as orders, orders.sender() as sender:
        await sender.send_messages(sent)
        assert ids(await orders.take(5)) == ids(sent)


async def test_a_large_message_arrives_byte_for_byte(own_broker):
    body = os.urandom(200 * 1024)
    async with Queue(own_broker) as orders:
        await orders.send(message(body))
        assert body_of((await orders.take())[0]) == body


async def test_a_message_at_the_limit_of_its_link_arrives_and_a_larger_one_is_refused(own_broker):
    # The SDK writes eight bytes before the body of a message that has nothing else.
    body = os.urandom(256 * 1024 - 8)
    async with Queue(own_broker) as orders:
        # It leaves it to the broker to refuse a larger one, and the link stays.
        for _ in range(2):
            with pytest.raises(MessageSizeExceededError, match="larger than the 262144 bytes"):
                await orders.send(AmqpAnnotatedMessage(data_body=body + b"x"))
        await orders.send(AmqpAnnotatedMessage(data_body=body))
        assert body_of((await orders.take())[0]) == body


async def test_messages_sent_without_ids_get_ids_that_stay(own_broker):
    without_id = AmqpAnnotatedMessage(data_body=b"body")
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(without_id, [without_id, without_id])
        assigned = ids(await orders.peek())
        assert len(set(assigned)) == 3
        assert all(re.fullmatch("[0-9a-fA-F]{32}", one) for one in assigned)
        received = await receive(receiver, 3)
        assert ids(received) == assigned
        for one in received:
            await receiver.dead_letter_message(one)
        assert ids(await orders.take(3, sub_queue=DEAD_LETTER)) == assigned


async def test_a_received_message_is_sent_again_and_arrives_as_it_was(own_broker):
    sent = message(time_to_live=timedelta(minutes=10), application_properties={"number": 7})
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(sent)
        for _ in range(3):
            own_broker.advance("PT1M")
            (received,) = await receive(receiver)
            assert (received.message_id, body_of(received)) == (sent.message_id, b"body")
            assert received.time_to_live == timedelta(minutes=10)
            assert received.application_properties == {b"number": 7}
            await orders.send(received)
            await receiver.complete_message(received)


async def test_message_properties_come_back_equal(own_broker):
    sent = message(
        correlation_id="the request",
        subject="orders",
        content_type="application/json",
        reply_to="the reply queue",
        time_to_live=timedelta(minutes=10),
        application_properties={"number": 7, "text": "naïve", "flag": True},
    )
    async with Queue(own_broker) as orders:
        await orders.send(sent)
        (received,) = await orders.take()
        for name in ("message_id", "correlation_id", "subject", "content_type", "reply_to", "time_to_live"):
            assert getattr(received, name) == getattr(sent, name), name
        assert received.application_properties == {b"number": 7, b"text": "naïve".encode(), b"flag": True}


async def test_a_value_body_comes_back_as_a_value(own_broker):
    value = {b"key": [1, 2.5, b"text", None, True]}
    async with Queue(own_broker) as orders:
        await orders.send(AmqpAnnotatedMessage(value_body=value))
        (received,) = await orders.take()
        assert received.body_type == AmqpMessageBodyType.VALUE
        assert received.raw_amqp_message.body == value


async def test_a_batch_arrives_whole_and_in_order(own_broker):
    sent = [message(f"part {number}") for number in range(10)]
    async with Queue(own_broker) as orders, orders.sender() as sender:
        batch = await sender.create_message_batch()
        for one in sent:
            batch.add_message(one)
        await sender.send_messages(batch)
        received = await orders.take(10)
        assert ids(received) == ids(sent)
        assert [body_of(one) for one in received] == [b"part %d" % number for number in range(10)]


async def test_a_full_batch_takes_no_more_and_is_sent(own_broker):
    async with Queue(own_broker) as orders, orders.sender() as sender:
        batch = await sender.create_message_batch(max_size_in_bytes=4096)
        with pytest.raises(MessageSizeExceededError):
            while True:
                batch.add_message(message("x" * 500))
        assert len(batch) > 2
        await sender.send_messages(batch)
        assert len(await orders.take(len(batch))) == len(batch)


async def test_two_hundred_concurrent_sends_all_arrive_once(own_broker):
    sent = [message(f"number {number}") for number in range(200)]
    async with Queue(own_broker) as orders:
        await asyncio.gather(*(send_all(orders, sent[start::5]) for start in range(5)))
        received = await orders.take(200)
        assert sorted(ids(received)) == sorted(ids(sent))
        assert await orders.is_empty()


async def send_all(queue, messages):
    async with queue.sender() as sender:
        for one in messages:
            await sender.send_messages(one)


async def test_peek_lock_hides_a_message_until_it_is_completed(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as holder, orders.receiver() as other:
        await orders.send(message())
        (received,) = await receive(holder)
        assert await other.receive_messages(max_message_count=1, max_wait_time=1) == []
        await holder.complete_message(received)
        await eventually(orders.is_empty, "the removal of the completed message")


async def test_receive_and_delete_removes_at_delivery(own_broker):
    async with Queue(own_broker) as orders:
        sent = message()
        await orders.send(sent)
        (received,) = await orders.take()
        assert received.message_id == sent.message_id
        assert received.lock_token is None
        assert await orders.is_empty()


async def test_peek_shows_messages_in_order_and_takes_nothing(own_broker):
    sent = [message(f"number {number}") for number in range(5)]
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(*sent)
        first = await receiver.peek_messages(max_message_count=3, sequence_number=1)
        rest = await receiver.peek_messages(max_message_count=10)
        assert ids(first + rest) == ids(sent)
        # Nobody holds them, so what is said of a lock is past.
        assert all(one.locked_until_utc < datetime.now(timezone.utc) for one in first)
        assert ids(await orders.take(5)) == ids(sent)


async def test_competing_receivers_get_disjoint_messages(own_broker):
    sent = [message() for _ in range(100)]
    async with Queue(own_broker) as orders, orders.sender() as sender:
        await sender.send_messages(sent)
        shares = await asyncio.gather(*(complete_until_empty(orders) for _ in range(4)))
        assert sorted(one for share in shares for one in share) == sorted(ids(sent))
        await eventually(orders.is_empty, "the removal of all messages")


async def complete_until_empty(queue):
    done = []
    async with queue.receiver() as receiver:
        while batch := await receiver.receive_messages(max_message_count=5, max_wait_time=1):
            await asyncio.gather(*(receiver.complete_message(one) for one in batch))
            done += ids(batch)
    return done


async def test_a_completed_message_never_comes_back(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(message())
        (received,) = await receive(receiver)
        await receiver.complete_message(received)
        await eventually(orders.is_empty, "the removal of the completed message")
        with pytest.raises(MessageAlreadySettled):
            await receiver.complete_message(received)
        assert await orders.peek(sub_queue=DEAD_LETTER) == []


async def test_an_abandoned_message_comes_back_with_its_count_raised(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(message())
        (first,) = await receive(receiver)
        await receiver.abandon_message(first)
        (second,) = await receive(receiver)
        assert second.sequence_number == first.sequence_number
        assert (first.delivery_count, second.delivery_count) == (0, 1)
        await receiver.complete_message(second)


async def test_the_dead_letter_queue_tells_reason_and_description(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        sent = message("bad")
        await orders.send(sent)
        (received,) = await receive(receiver)
        await receiver.dead_letter_message(received, reason="Unreadable", error_description="It is not JSON.")
        (dead,) = await orders.take(sub_queue=DEAD_LETTER)
        assert dead.message_id == sent.message_id
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Unreadable", "It is not JSON.")
        assert await orders.is_empty()


async def test_three_abandoned_deliveries_dead_letter_a_message(own_broker):
    async with Queue(own_broker, "brief") as brief, brief.receiver() as receiver:
        await brief.send(message())
        for expected in range(3):
            (received,) = await receive(receiver)
            assert received.delivery_count == expected
            await receiver.abandon_message(received)
        (dead,) = await brief.take(sub_queue=DEAD_LETTER)
        assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"


async def test_a_deferred_message_comes_only_by_its_number(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        sent = message("later")
        await orders.send(sent)
        (received,) = await receive(receiver)
        await receiver.defer_message(received)

        async def is_deferred():
            return [one.state for one in await orders.peek()] == [ServiceBusMessageState.DEFERRED]

        await eventually(is_deferred, "the deferral")
        assert await receiver.receive_messages(max_message_count=1, max_wait_time=1) == []
        (deferred,) = await receiver.receive_deferred_messages([received.sequence_number])
        assert deferred.message_id == sent.message_id
        assert deferred.delivery_count == 1
        await receiver.complete_message(deferred)
        assert await orders.is_empty()


async def test_an_unknown_deferred_number_is_not_found(own_broker):
    async with Queue(own_broker, retry_total=0) as orders, orders.receiver() as receiver:
        with pytest.raises(MessageNotFoundError):
            await receiver.receive_deferred_messages(2**40)


async def test_scheduled_messages_come_at_their_time_and_cancelled_ones_do_not(own_broker):
    due = datetime.now(timezone.utc) + timedelta(hours=1)
    kept, cancelled = message("kept"), message("cancelled")
    # The SDK would ask again, for ten seconds in all, when there is nothing to cancel.
    async with Queue(own_broker, retry_total=0) as orders, orders.sender() as sender:
        numbers = await sender.schedule_messages([kept, cancelled], due)
        peeked = await orders.peek()
        assert [one.sequence_number for one in peeked] == numbers
        assert {one.state for one in peeked} == {ServiceBusMessageState.SCHEDULED}
        await sender.cancel_scheduled_messages(numbers[1])
        with pytest.raises(MessageNotFoundError):
            await sender.cancel_scheduled_messages(numbers)
        own_broker.advance("PT1H")
        (received,) = await orders.take()
        assert received.message_id == kept.message_id
        assert received.sequence_number > numbers[1]
        assert await orders.is_empty()


async def test_messages_that_are_sent_with_a_time_come_by_time(own_broker):
    now = datetime.now(timezone.utc)
    second = message("second", scheduled_enqueue_time_utc=now + timedelta(hours=2))
    first = message("first", scheduled_enqueue_time_utc=now + timedelta(hours=1))
    past = message("past", scheduled_enqueue_time_utc=now - timedelta(hours=1))
    async with Queue(own_broker) as orders:
        await orders.send(second, first, past)
        own_broker.advance("PT2H")
        assert ids(await orders.take(3)) == ids([past, first, second])


async def test_a_second_message_with_an_id_is_accepted_and_dropped(own_broker):
    async with Queue(own_broker, "once") as once:
        first, other = message("first"), message("other")
        await once.send(first, message("again", message_id=first.message_id), other)
        assert [body_of(one) for one in await once.take(2)] == [b"first", b"other"]
        own_broker.advance("PT10M")
        await once.send(message("anew", message_id=first.message_id))
        assert [body_of(one) for one in await once.take()] == [b"anew"]


async def test_a_batch_is_checked_message_by_message(own_broker):
    first, second = message("first"), message("second")
    async with Queue(own_broker, "once") as once, once.sender() as sender:
        await sender.send_messages([first, second, message("again", message_id=first.message_id)])
        assert ids(await once.take(2)) == ids([first, second])
        assert await once.is_empty()


async def test_a_message_arrives_where_its_queue_forwards_to(own_broker):
    async with Queue(own_broker, "forward") as forward:
        sent = message()
        await forward.send(sent)
        assert ids(await forward.take(queue="target")) == [sent.message_id]


async def test_a_dead_letter_arrives_with_its_reason_and_its_source(own_broker):
    async with Queue(own_broker, "mortal") as mortal, mortal.receiver() as receiver:
        await mortal.send(message())
        (received,) = await receive(receiver)
        await receiver.dead_letter_message(received, reason="broken")
        (dead,) = await mortal.take(queue="target")
        assert (dead.dead_letter_reason, dead.dead_letter_source) == ("broken", "mortal")


async def test_a_message_expires_when_its_day_has_passed(own_broker):
    async with Queue(own_broker) as orders:
        sent = message()
        await orders.send(sent)
        own_broker.advance("P1D")
        (dead,) = await orders.take(sub_queue=DEAD_LETTER)
        assert (dead.message_id, dead.dead_letter_reason) == (sent.message_id, "TTLExpiredException")


async def test_a_lock_is_lost_when_its_five_minutes_have_passed(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(message())
        (late,) = await receive(receiver)
        own_broker.advance("PT5M")
        if AWAITS_SETTLEMENT:
            with pytest.raises(MessageLockLostError):
                await receiver.complete_message(late)
        (again,) = await receive(receiver)
        assert again.delivery_count == 1
        await receiver.complete_message(again)


async def test_a_lock_that_was_renewed_lasts_from_its_renewal(own_broker):
    async with Queue(own_broker) as orders, orders.receiver() as receiver:
        await orders.send(message())
        (held,) = await receive(receiver)
        own_broker.advance("PT4M")
        await receiver.renew_message_lock(held)
        own_broker.advance("PT4M")
        await receiver.complete_message(held)
        await eventually(orders.is_empty, "the removal of the completed message")


async def test_a_wrong_key_is_an_authentication_error(own_broker):
    async with Queue(own_broker, retry_total=0) as orders:
        own_broker.connection_string = own_broker.connection_string.replace("AccessKey=", "AccessKey=wrong")
        async with Queue(own_broker, retry_total=0) as stranger:
            with pytest.raises(ServiceBusAuthenticationError) as raised:
                await stranger.send(message())
            assert raised.value.inner_exception.status_code == 401
        await orders.send(message("still served"))


async def test_a_missing_queue_is_refused_with_404(own_broker):
    async with Queue(own_broker, "missing", retry_total=0) as missing:
        with pytest.raises(ServiceBusAuthenticationError) as raised:
            await missing.send(message())
        assert raised.value.inner_exception.status_code == 404


async def test_a_receiver_where_messages_go_on_is_refused(own_broker):
    async with Queue(own_broker, "forward", retry_total=0) as forward:
        with pytest.raises(ServiceBusError, match="auto-forwarding"):
            async with forward.receiver() as receiver:
                await receiver.receive_messages(max_message_count=1, max_wait_time=1)
