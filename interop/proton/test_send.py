"""Sending: one, many in flight, large, settled in advance; and what the broker stamps on a message."""

import os
import time

import pytest

from proton import Delivery
from proton.reactor import AtMostOnce

from support import SEQUENCE_NUMBER, connect, eventually, message, Queue

KIB = 1024


def test_a_sent_message_arrives_with_its_body(plain):
    sent = message("hello")
    (delivery,) = plain.send(sent)
    assert delivery.remote_state == Delivery.ACCEPTED
    (received,) = plain.take()
    assert (received.id, received.body) == (sent.id, "hello")


def test_two_hundred_unsettled_sends_on_one_link_all_arrive_in_order(connection, plain):
    sent = [message(f"number {number}") for number in range(200)]
    sender = plain.sender()
    deliveries = []
    for one in sent:
        connection.wait(lambda: sender.link.credit > 0, msg="credit")
        deliveries.append(sender.link.send(one))
    connection.wait(lambda: all(delivery.settled for delivery in deliveries), msg="all outcomes")
    assert all(delivery.remote_state == Delivery.ACCEPTED for delivery in deliveries)
    assert [one.id for one in plain.take(200)] == [one.id for one in sent]
    assert plain.peek() == []


def test_sends_of_several_connections_all_arrive_once(plain):
    connections = [connect() for _ in range(10)]
    sent = []
    for connection in connections * 2:
        sent.append(message())
        Queue(connection, plain.name).send(sent[-1])
    for connection in connections:
        connection.close()
    assert sorted(one.id for one in plain.take(20)) == sorted(one.id for one in sent)


def test_a_send_settled_in_advance_arrives(connection, plain):
    sent = message()
    sender = connection.create_sender(plain.name, options=AtMostOnce())
    sender.send(sent)
    assert [one.id for one in plain.take()] == [sent.id]


@pytest.mark.parametrize("size", [200 * KIB, 900 * KIB])
def test_a_large_message_arrives_byte_for_byte(large, size):
    body = os.urandom(size)
    large.send(message(body))
    receiver = large.receiver()
    received = receiver.receive()
    assert bytes(received.message.body) == body
    receiver.complete(received)
    assert large.peek() == []


def test_sequence_numbers_rise_and_enqueued_times_are_now(plain):
    before = (time.time() - 5) * 1000
    plain.send(*(message() for _ in range(5)))
    received = plain.take(5)
    numbers = [one.annotations[SEQUENCE_NUMBER] for one in received]
    times = [one.annotations["x-opt-enqueued-time"] for one in received]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert times == sorted(times)
    assert before <= times[0] and times[-1] <= (time.time() + 5) * 1000


def test_the_link_announces_the_largest_message(connection, plain):
    assert plain.sender().link.remote_max_message_size == 1024 * KIB


def test_a_message_above_the_limit_is_refused(connection, large):
    sender = large.sender()
    delivery = sender.link.send(message(os.urandom(1100 * KIB)))
    refused = eventually(lambda: refusal(connection, sender, delivery), "the refusal")
    assert refused == "amqp:link:message-size-exceeded"
    assert large.peek() == []


def refusal(connection, sender, delivery):
    """The condition, in the outcome or in a detach: the contract allows both."""
    try:
        connection.wait(lambda: delivery.settled, timeout=1)
    except Exception as detached:
        return getattr(detached, "condition", None)
    return delivery.remote.condition and delivery.remote.condition.name
