"""Annotations: which ones a message carries, by how it came here and how it is looked at."""

import time
import uuid

import pytest

from proton import int32, symbol, timestamp

from support import (
    ACTIVE,
    DEFERRED,
    ENQUEUED_SEQUENCE_NUMBER,
    ENQUEUED_TIME,
    LOCK_TOKEN,
    LOCKED_UNTIL,
    MESSAGE_STATE,
    SCHEDULED,
    SCHEDULED_TIME,
    SEQUENCE_NUMBER,
    UNLOCKED,
    Queue,
    decoded,
    message,
)

PLAIN = {ENQUEUED_TIME, SEQUENCE_NUMBER}


@pytest.fixture
def orders(own_connection):
    """An empty queue with locks of five minutes."""
    return Queue(own_connection, "orders")


def peeked(queue):
    (found,) = queue.peek()
    return found


def test_a_plain_delivery_has_its_time_number_and_lock(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    assert set(received.message.annotations) == PLAIN | {LOCKED_UNTIL}
    assert received.message.instructions == {LOCK_TOKEN: received.token}
    # The tag is the token as .NET lays it out.
    assert received.tag == received.token.bytes_le
    receiver.complete(received)


def test_a_delivery_to_delete_has_no_lock_and_an_empty_tag(plain):
    plain.send(message(), message())
    receiver = plain.deleting_receiver()
    for _ in range(2):
        received = receiver.receive()
        assert set(received.message.annotations) == PLAIN
        assert not received.message.instructions
        assert received.tag == b""


def test_a_deferred_message_has_a_state_and_a_lock(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    receiver.defer(received)
    with plain.management() as management:
        encoded, token = management.take_deferred(received.number)
        deferred = decoded(encoded)
        assert set(deferred.annotations) == PLAIN | {LOCKED_UNTIL, MESSAGE_STATE}
        assert deferred.annotations[MESSAGE_STATE] == DEFERRED
        assert deferred.instructions == {LOCK_TOKEN: token}
        assert management.update_disposition("abandoned", token).status == 200
        encoded, _ = management.take_deferred(received.number, settle_mode=0)
        deleted = decoded(encoded)
        assert set(deleted.annotations) == PLAIN | {MESSAGE_STATE}
        assert deleted.instructions is None


def test_a_peeked_message_has_a_state_and_a_lock_that_is_past(plain):
    plain.send(message())
    found = peeked(plain)
    assert set(found.annotations) == PLAIN | {LOCKED_UNTIL, MESSAGE_STATE}
    assert (found.annotations[LOCKED_UNTIL], found.annotations[MESSAGE_STATE]) == (UNLOCKED, ACTIVE)
    assert type(found.annotations[MESSAGE_STATE]) is int32
    assert type(found.annotations[LOCKED_UNTIL]) is timestamp
    assert found.instructions is None


def test_a_message_that_was_scheduled_says_so(orders, own_broker):
    due = {symbol(SCHEDULED_TIME): timestamp(int(time.time() * 1000) + 3_600_000)}
    orders.send(message(annotations=due), message(annotations=due))
    assert {one.annotations[MESSAGE_STATE] for one in orders.peek()} == {SCHEDULED}
    own_broker.advance("PT61M")
    assert {one.annotations[MESSAGE_STATE] for one in orders.peek()} == {ACTIVE}
    locked = orders.receiver().receive().message
    assert set(locked.annotations) == PLAIN | {LOCKED_UNTIL, SCHEDULED_TIME, MESSAGE_STATE}
    (deleted,) = orders.take()
    assert set(deleted.annotations) == PLAIN | {SCHEDULED_TIME, MESSAGE_STATE}
    assert locked.annotations[MESSAGE_STATE] == deleted.annotations[MESSAGE_STATE] == SCHEDULED


def test_a_message_whose_time_had_passed_was_not_scheduled(plain):
    plain.send(message(annotations={symbol(SCHEDULED_TIME): timestamp(int(time.time() * 1000) - 3_600_000)}))
    (received,) = plain.take()
    assert set(received.annotations) == PLAIN | {SCHEDULED_TIME}


def test_a_forwarded_message_has_the_number_of_its_first_entity(own_connection):
    target, forward = Queue(own_connection, "target"), Queue(own_connection, "forward")
    target.send(message("first in the target"))
    forward.send(message())
    receiver = target.receiver()
    assert set(receiver.receive().message.annotations) == PLAIN | {LOCKED_UNTIL}
    forwarded = receiver.receive().message
    assert set(forwarded.annotations) == PLAIN | {LOCKED_UNTIL, ENQUEUED_SEQUENCE_NUMBER}
    assert (forwarded.annotations[SEQUENCE_NUMBER], forwarded.annotations[ENQUEUED_SEQUENCE_NUMBER]) == (2, 1)
    assert [ENQUEUED_SEQUENCE_NUMBER in one.annotations for one in target.peek()] == [False, True]


INSTRUCTIONS = {symbol("x-number"): 7, symbol("x-list"): ["a", True, None], symbol("x-id"): uuid.UUID(int=5)}


def test_the_senders_annotations_arrive(plain):
    plain.send(message(instructions=INSTRUCTIONS, annotations={symbol("x-mine"): "text"}))
    assert peeked(plain).instructions == INSTRUCTIONS
    receiver = plain.receiver()
    received = receiver.receive()
    assert set(received.message.annotations) == PLAIN | {LOCKED_UNTIL, "x-mine"}
    assert received.message.instructions == {**INSTRUCTIONS, symbol(LOCK_TOKEN): received.token}
    receiver.defer(received)
    with plain.management() as management:
        encoded, token = management.take_deferred(received.number)
        assert decoded(encoded).instructions == {**INSTRUCTIONS, symbol(LOCK_TOKEN): token}
        assert management.update_disposition("suspended", token).status == 200
    (dead,) = plain.dead_letter.take()
    assert dead.instructions == INSTRUCTIONS


def test_the_broker_replaces_what_a_sender_says_of_lock_number_and_time(plain):
    theirs = {symbol(SEQUENCE_NUMBER): 99, symbol(ENQUEUED_TIME): timestamp(1), symbol(LOCKED_UNTIL): timestamp(2)}
    theirs |= {symbol(MESSAGE_STATE): int32(1), symbol(ENQUEUED_SEQUENCE_NUMBER): 98}
    plain.send(message(instructions={symbol(LOCK_TOKEN): uuid.UUID(int=1)}, annotations=theirs))
    receiver = plain.receiver()
    received = receiver.receive()
    assert set(received.message.annotations) == PLAIN | {LOCKED_UNTIL}
    assert received.number != 99
    assert received.locked_until > received.message.annotations[ENQUEUED_TIME] > time.time() * 1000 - 60_000
    assert received.message.instructions == {LOCK_TOKEN: received.token}
    assert received.tag == received.token.bytes_le
    receiver.complete(received)
