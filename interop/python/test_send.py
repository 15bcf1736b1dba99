"""Sending: one, a batch, many at once, large; and what the broker stamps on a message."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.exceptions import MessageSizeExceededError

from support import body_of, message

KIB = 1024


def test_a_sent_message_arrives_with_its_body(plain):
    sent = message("hello")
    plain.send(sent)
    (received,) = plain.take()
    assert received.message_id == sent.message_id
    assert body_of(received) == b"hello"


def test_a_batch_arrives_whole_and_in_order(client, plain):
    sent = [message(f"part {number}") for number in range(10)]
    with client.get_queue_sender(plain.name) as sender:
        batch = sender.create_message_batch()
        for one in sent:
            batch.add_message(one)
        sender.send_messages(batch)
    received = plain.take(10)
    assert [one.message_id for one in received] == [one.message_id for one in sent]
    assert [body_of(one) for one in received] == [b"part %d" % number for number in range(10)]
    numbers = [one.sequence_number for one in received]
    assert numbers == list(range(numbers[0], numbers[0] + 10))


def test_a_full_batch_takes_no_more_and_is_sent(client, plain):
    with client.get_queue_sender(plain.name) as sender:
        batch = sender.create_message_batch(max_size_in_bytes=4096)
        with pytest.raises(MessageSizeExceededError):
            while True:
                batch.add_message(message("x" * 500))
        assert len(batch) > 2
        sender.send_messages(batch)
    assert len(plain.take(len(batch))) == len(batch)


def test_a_list_of_messages_arrives_whole(client, plain):
    sent = [message() for _ in range(5)]
    with client.get_queue_sender(plain.name) as sender:
        sender.send_messages(sent)
    assert [one.message_id for one in plain.take(5)] == [one.message_id for one in sent]


def test_two_hundred_concurrent_sends_all_arrive_once(client, plain):
    sent = [message(f"number {number}") for number in range(200)]
    with ThreadPoolExecutor(max_workers=20) as pool:
        # A sender of this SDK belongs to one thread, so each worker sends its share on its own connection.
        list(pool.map(lambda share: send_all(client, plain.name, share), [sent[start::20] for start in range(20)]))
    received = plain.take(200)
    assert sorted(one.message_id for one in received) == sorted(one.message_id for one in sent)
    assert plain.is_empty()


def send_all(client, name, messages):
    with client.get_queue_sender(name) as sender:
        for one in messages:
            sender.send_messages(one)


@pytest.mark.parametrize("size", [200 * KIB, 900 * KIB])
def test_a_large_message_arrives_byte_for_byte(large, size):
    body = os.urandom(size)
    large.send(message(body))
    with large.receiver() as receiver:
        (received,) = receiver.receive_messages(max_message_count=1, max_wait_time=20)
        assert body_of(received) == body
        receiver.complete_message(received)


# What this SDK writes before the body of a message that has nothing else.
OVERHEAD = 8


def test_a_message_at_the_limit_of_its_link_arrives_and_a_larger_one_is_refused(client, large):
    limit = 1024 * KIB
    body = os.urandom(limit - OVERHEAD)
    with client.get_queue_sender(large.name) as sender:
        # The SDK leaves it to the broker to refuse it, and the link stays.
        for _ in range(3):
            with pytest.raises(MessageSizeExceededError, match="larger than the 1048576 bytes"):
                sender.send_messages(AmqpAnnotatedMessage(data_body=body + b"x"))
        sender.send_messages(AmqpAnnotatedMessage(data_body=body))
    with large.receiver() as receiver:
        (received,) = receiver.receive_messages(max_message_count=1, max_wait_time=20)
        assert body_of(received) == body
        receiver.defer_message(received)
        (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
        assert body_of(deferred) == body
        receiver.complete_message(deferred)
    assert large.is_empty()


def test_sequence_numbers_rise_and_enqueued_times_are_now(plain):
    before = datetime.now(timezone.utc) - timedelta(seconds=5)
    plain.send(*(message() for _ in range(5)))
    received = plain.take(5)
    numbers = [one.sequence_number for one in received]
    times = [one.enqueued_time_utc for one in received]
    assert numbers[0] > 0
    assert numbers == sorted(set(numbers))
    assert times == sorted(times)
    assert before <= times[0] and times[-1] <= datetime.now(timezone.utc) + timedelta(seconds=5)
