"""Annotations and sections: which ones a message carries, by how it came here and how it is looked at.

This SDK writes the delivery annotations of a message behind its body and footer.
"""

from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus import ServiceBusMessageState
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from support import DEAD_LETTER, Queue, body_of, connect, message, receive

ENQUEUED_TIME = b"x-opt-enqueued-time"
ENQUEUED_SEQUENCE_NUMBER = b"x-opt-enqueue-sequence-number"
LOCKED_UNTIL = b"x-opt-locked-until"
LOCK_TOKEN = b"x-opt-lock-token"
SCHEDULED_TIME = b"x-opt-scheduled-enqueue-time"
SEQUENCE_NUMBER = b"x-opt-sequence-number"
STATE = b"x-opt-message-state"

YEAR_ONE = datetime(1, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def client(broker):
    with connect(broker.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def orders(client):
    return Queue(client, "orders")


@pytest.fixture(scope="module")
def receiver(orders):
    with orders.receiver() as receiver:
        yield receiver


def annotations(received):
    return set(received.raw_amqp_message.annotations)


def delivery_annotations(received):
    return received.raw_amqp_message.delivery_annotations or {}


def defer_and_receive(receiver):
    (received,) = receive(receiver)
    receiver.defer_message(received)
    (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
    return deferred


def test_a_plain_delivery_has_its_time_number_and_lock(orders, receiver):
    orders.send(message())
    (received,) = receive(receiver)
    assert annotations(received) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL}
    assert delivery_annotations(received) == {LOCK_TOKEN: received.lock_token}
    assert received.state == ServiceBusMessageState.ACTIVE
    assert received.enqueued_sequence_number is None
    receiver.complete_message(received)


def test_a_delivery_to_delete_has_no_lock(orders):
    orders.send(message())
    (received,) = orders.take()
    assert annotations(received) == {ENQUEUED_TIME, SEQUENCE_NUMBER}
    assert delivery_annotations(received) == {}
    assert received.lock_token is None
    assert received.locked_until_utc is None


def test_a_deferred_message_has_a_state_and_a_lock(orders, receiver):
    orders.send(message())
    deferred = defer_and_receive(receiver)
    assert annotations(deferred) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE}
    assert delivery_annotations(deferred) == {LOCK_TOKEN: deferred.lock_token}
    assert deferred.state == ServiceBusMessageState.DEFERRED
    receiver.complete_message(deferred)


def test_a_peeked_message_has_a_state_and_a_lock_that_is_past(orders):
    orders.send(message())
    (peeked,) = orders.peek()
    assert annotations(peeked) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE}
    assert delivery_annotations(peeked) == {}
    assert (peeked.state, peeked.locked_until_utc) == (ServiceBusMessageState.ACTIVE, YEAR_ONE)
    orders.take()


def test_a_peeked_message_that_is_locked_shows_its_deadline(orders, receiver):
    orders.send(message())
    (received,) = receive(receiver)
    (peeked,) = orders.peek()
    assert annotations(peeked) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE}
    assert delivery_annotations(peeked) == {}
    # Each time that it is shown, the deadline is counted from the moment.
    assert abs(peeked.locked_until_utc - received.locked_until_utc) < timedelta(seconds=1)
    receiver.complete_message(received)


def test_a_message_that_was_scheduled_says_so(broker, orders, receiver):
    due = datetime.now(timezone.utc) + timedelta(hours=1)
    orders.send(message(scheduled_enqueue_time_utc=due))
    orders.sender.schedule_messages(message(), due)
    broker.advance("PT61M")
    assert [one.state for one in orders.peek()] == [ServiceBusMessageState.ACTIVE] * 2
    for received in receive(receiver, 2):
        assert annotations(received) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, SCHEDULED_TIME, STATE}
        assert received.state == ServiceBusMessageState.SCHEDULED
        assert received.enqueued_sequence_number is None
        receiver.complete_message(received)


def test_a_message_whose_time_had_passed_was_not_scheduled(orders):
    orders.send(message(scheduled_enqueue_time_utc=datetime.now(timezone.utc) - timedelta(hours=1)))
    (received,) = orders.take()
    assert annotations(received) == {ENQUEUED_TIME, SEQUENCE_NUMBER, SCHEDULED_TIME}
    assert received.state == ServiceBusMessageState.ACTIVE


def test_a_forwarded_message_has_the_number_of_its_first_entity(client):
    target, forward = Queue(client, "target"), Queue(client, "forward")
    target.send(message("first in the target"))
    forward.send(message())
    plain, forwarded = target.take(2)
    assert annotations(plain) == {ENQUEUED_TIME, SEQUENCE_NUMBER}
    assert annotations(forwarded) == {ENQUEUED_TIME, SEQUENCE_NUMBER, ENQUEUED_SEQUENCE_NUMBER}
    assert (forwarded.sequence_number, forwarded.enqueued_sequence_number) == (2, 1)


SENT = {"x-of-the-delivery": 7, "list": ["a", True]}
ARRIVED = {b"x-of-the-delivery": 7, b"list": [b"a", True]}


def annotated(**sections):
    return AmqpAnnotatedMessage(data_body=b"annotated", **sections)


def test_the_senders_annotations_arrive(orders, receiver):
    orders.send(annotated(delivery_annotations=SENT, annotations={"x-of-the-message": "text"}))
    (peeked,) = orders.peek()
    assert delivery_annotations(peeked) == ARRIVED
    (received,) = receive(receiver)
    assert annotations(received) == {ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, b"x-of-the-message"}
    assert delivery_annotations(received) == {**ARRIVED, LOCK_TOKEN: received.lock_token}
    receiver.abandon_message(received)
    (taken,) = orders.take()
    assert delivery_annotations(taken) == ARRIVED


def test_a_footer_and_delivery_annotations_behind_the_body_arrive(orders):
    orders.send(annotated(delivery_annotations=SENT, footer={"checksum": 17}, application_properties={"a": "b"}))
    orders.send([annotated(delivery_annotations=SENT, footer={"checksum": 17}, application_properties={"a": "b"})])
    for received in orders.take(2):
        assert body_of(received) == b"annotated"
        assert received.raw_amqp_message.footer == {b"checksum": 17}
        assert received.application_properties == {b"a": b"b"}
        assert delivery_annotations(received) == ARRIVED


def test_a_message_without_a_body_arrives_without_one(orders, receiver):
    orders.send(AmqpAnnotatedMessage(value_body=None, application_properties={"a": "b"}))
    (peeked,) = orders.peek()
    (received,) = receive(receiver)
    for one in (peeked, received):
        # Of a message with a data section, be it empty, the SDK says that its body is data.
        assert (one.body_type, one.body) == (AmqpMessageBodyType.VALUE, None)
        assert one.application_properties == {b"a": b"b"}
    receiver.complete_message(received)


RESENDS = {
    "itself": lambda received: received,
    "its raw message": lambda received: received.raw_amqp_message,
    "a list": lambda received: [received],
}


@pytest.mark.parametrize("resend", RESENDS)
def test_a_received_message_is_sent_again_and_arrives_as_it_was(orders, receiver, resend):
    sent = message(
        b"\x00\x01binary\xff",
        correlation_id="the request",
        subject="orders",
        content_type="application/json",
        reply_to="the reply queue",
        session_id="session",
        partition_key="session",
        application_properties={"number": 7, "text": "naïve", "flag": True},
    )
    orders.send(sent)
    (first,) = receive(receiver)
    orders.send(RESENDS[resend](first))
    receiver.complete_message(first)
    (second,) = receive(receiver)
    fields = ("message_id", "correlation_id", "subject", "content_type", "reply_to", "session_id", "partition_key")
    for name in fields:
        assert getattr(second, name) == getattr(sent, name), name
    assert body_of(second) == b"\x00\x01binary\xff"
    assert second.application_properties == {b"number": 7, b"text": "naïve".encode(), b"flag": True}
    # The lock token of the first delivery came along, but that of the second stands.
    assert delivery_annotations(second) == {LOCK_TOKEN: second.lock_token}
    assert second.sequence_number == first.sequence_number + 1
    receiver.complete_message(second)


def test_a_dead_letter_is_sent_again_and_arrives_as_a_message(orders, receiver):
    orders.send(message("twice"))
    receiver.dead_letter_message(receive(receiver)[0], reason="once more")
    with orders.receiver(sub_queue=DEAD_LETTER) as dead_letters:
        (dead,) = receive(dead_letters)
        orders.send(dead)
        dead_letters.complete_message(dead)
    (again,) = orders.take()
    assert (body_of(again), again.delivery_count) == (b"twice", 0)
    assert again.dead_letter_reason == "once more"
