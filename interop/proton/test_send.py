"""Sending: one, many in flight, large, settled in advance; and what the broker stamps on a message."""

import os
import time

import pytest

from proton import Delivery
from proton.reactor import AtMostOnce
from proton.utils import LinkDetached

from support import SEQUENCE_NUMBER, Queue, Requests, connect, decoded, message

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


def test_links_on_which_clients_send_state_a_largest_message(connection, plain):
    assert plain.sender().link.remote_max_message_size == 1024 * KIB
    for node in (f"{plain.name}/$management", "$cbs"):
        with Requests(connection, node) as links:
            assert 0 < links.requests.link.remote_max_message_size <= 4096 * KIB


def test_links_on_which_the_broker_sends_state_none(connection, plain):
    for receiver in (plain.receiver(), plain.deleting_receiver(), plain.dead_letter.receiver()):
        assert receiver.link.link.remote_max_message_size == 0
    for node in (f"{plain.name}/$management", "$cbs"):
        with Requests(connection, node) as links:
            assert links.answers.link.remote_max_message_size == 0


def sized(size):
    """A message of this many bytes in all."""
    overhead = len(message(b"x" * KIB).encode()) - KIB
    sized = message(os.urandom(size - overhead))
    assert len(sized.encode()) == size
    return sized


@pytest.mark.parametrize("below", [0, 1, 100])
def test_a_message_at_the_limit_arrives_wherever_it_is_asked_for(large, below):
    sent = sized(1024 * KIB - below)
    large.send(sent)
    receiver = large.receiver()
    with large.management() as management:
        assert decoded(management.peek_bytes()).body == sent.body
        received = receiver.receive()
        assert received.message.body == sent.body
        receiver.defer(received)
        encoded, token = management.take_deferred(received.number)
        assert decoded(encoded).body == sent.body
        assert management.update_disposition("suspended", token).status == 200
    (dead,) = large.dead_letter.take()
    assert dead.body == sent.body


@pytest.mark.parametrize("excess", [1, 100 * KIB])
def test_a_message_above_the_limit_is_rejected_and_the_link_stays(connection, large, excess):
    sender = large.sender()
    first_credit = sender.link.credit
    for _ in range(3):
        delivery = sender.link.send(sized(1024 * KIB + excess))
        connection.wait(lambda: delivery.settled, msg="the refusal")
        assert delivery.remote_state == Delivery.REJECTED
        assert delivery.remote.condition.name == "amqp:link:message-size-exceeded"
    sent = message()
    assert sender.send(sent).remote_state == Delivery.ACCEPTED
    assert sender.link.credit >= first_credit // 2
    assert [one.id for one in large.take()] == [sent.id]
    assert large.peek() == []


def test_a_message_above_the_limit_that_was_settled_in_advance_ends_the_link(connection, large):
    sender = connection.create_sender(large.name, options=AtMostOnce())
    sender.link.send(sized(1024 * KIB + 1))
    with pytest.raises(LinkDetached) as raised:
        connection.wait(lambda: False, timeout=10)
    assert raised.value.condition == "amqp:link:message-size-exceeded"
    assert large.peek() == []
