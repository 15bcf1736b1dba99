"""Settling: complete, abandon, dead-letter, defer; the delivery count and the limit of deliveries.

This SDK shows the count of failed deliveries before the present one (docs/spec/amqp.md#4.4).
"""

import pytest

from azure.servicebus import ServiceBusMessageState
from azure.servicebus.exceptions import MessageAlreadySettled, MessageNotFoundError

from support import DEAD_LETTER, body_of, connect, eventually, message, receive


def test_a_completed_message_never_comes_back(plain):
    plain.send(message())
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        receiver.complete_message(received)
        eventually(plain.is_empty, "the removal of the completed message")
        with pytest.raises(MessageAlreadySettled):
            receiver.complete_message(received)
    assert plain.peek(sub_queue=DEAD_LETTER) == []


def test_an_abandoned_message_comes_back_with_its_count_raised(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver() as receiver:
        (first,) = receive(receiver)
        assert first.delivery_count == 0
        receiver.abandon_message(first)
        (second,) = receive(receiver)
        assert second.message_id == sent.message_id
        assert second.sequence_number == first.sequence_number
        assert second.delivery_count == 1
        assert second.lock_token != first.lock_token
        receiver.complete_message(second)


def test_the_dead_letter_queue_tells_reason_and_description(plain):
    sent = message("bad", application_properties={"kept": "yes"})
    plain.send(sent)
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        receiver.dead_letter_message(received, reason="Unreadable", error_description="The body is not JSON.")
    (dead,) = plain.take(sub_queue=DEAD_LETTER)
    assert dead.message_id == sent.message_id
    assert dead.sequence_number == received.sequence_number
    assert dead.dead_letter_reason == "Unreadable"
    assert dead.dead_letter_error_description == "The body is not JSON."
    assert dead.application_properties[b"kept"] == b"yes"
    assert plain.is_empty()


def test_a_message_can_be_dead_lettered_without_a_reason(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver() as receiver:
        receiver.dead_letter_message(receive(receiver)[0])
    (dead,) = plain.take(sub_queue=DEAD_LETTER)
    assert dead.message_id == sent.message_id
    assert not dead.dead_letter_reason


def test_a_dead_letter_is_received_in_peek_lock_and_completed(plain):
    plain.send(message())
    with plain.receiver() as receiver:
        receiver.dead_letter_message(receive(receiver)[0], reason="Looked at later")
    with plain.receiver(sub_queue=DEAD_LETTER) as receiver:
        (dead,) = receive(receiver)
        receiver.complete_message(dead)
        eventually(lambda: not plain.peek(sub_queue=DEAD_LETTER), "the removal of the dead letter")


def test_a_deferred_message_comes_only_by_its_number(plain):
    sent = message("later")
    plain.send(sent)
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        receiver.defer_message(received)
        eventually(
            lambda: [one.state for one in plain.peek()] == [ServiceBusMessageState.DEFERRED],
            "the deferral",
        )
        assert receiver.receive_messages(max_message_count=1, max_wait_time=1) == []
        (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
        assert deferred.message_id == sent.message_id
        assert deferred.lock_token is not None
        assert deferred.delivery_count == 1
        receiver.complete_message(deferred)
    assert plain.is_empty()


def test_a_defer_raises_the_delivery_count_and_does_not_dead_letter(plain):
    plain.send(message())
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        assert received.delivery_count == 0
        receiver.defer_message(received)
        # Three is the most that this queue delivers a message without a defer.
        for expected in range(1, 5):
            (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
            assert deferred.delivery_count == expected
            receiver.defer_message(deferred)
        assert [one.delivery_count for one in plain.peek()] == [5]
        assert plain.peek(sub_queue=DEAD_LETTER) == []
        (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
        receiver.abandon_message(deferred)
    (dead,) = plain.take(sub_queue=DEAD_LETTER)
    assert (dead.dead_letter_reason, dead.delivery_count) == ("MaxDeliveryCountExceeded", 6)


def test_dead_lettering_does_not_raise_the_delivery_count(plain):
    plain.send(message("at once"), message("deferred"))
    with plain.receiver() as receiver:
        receiver.dead_letter_message(receive(receiver)[0])
        (received,) = receive(receiver)
        receiver.defer_message(received)
        receiver.dead_letter_message(receiver.receive_deferred_messages(received.sequence_number)[0])
    dead = plain.take(2, sub_queue=DEAD_LETTER)
    assert [(body_of(one), one.delivery_count) for one in dead] == [(b"at once", 0), (b"deferred", 1)]


def test_an_abandoned_deferred_message_stays_deferred(plain):
    plain.send(message())
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        receiver.defer_message(received)
        eventually(lambda: plain.peek()[0].state == ServiceBusMessageState.DEFERRED, "the deferral")
        (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
        receiver.abandon_message(deferred)
        (again,) = receiver.receive_deferred_messages(received.sequence_number)
        receiver.dead_letter_message(again, reason="Deferred too long", error_description="Given up.")
    (dead,) = plain.take(sub_queue=DEAD_LETTER)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Deferred too long", "Given up.")


def test_an_unknown_deferred_number_is_not_found(plain):
    # The SDK would ask again, for ten seconds in all.
    with connect(retry_total=0) as client, client.get_queue_receiver(plain.name) as receiver:
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages(2**40)


def test_three_abandoned_deliveries_dead_letter_a_message(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver() as receiver:
        for expected in range(3):
            (received,) = receive(receiver)
            assert received.delivery_count == expected
            receiver.abandon_message(received)
    (dead,) = plain.take(sub_queue=DEAD_LETTER)
    assert dead.message_id == sent.message_id
    assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"
    assert dead.dead_letter_error_description == "Message could not be consumed after 3 delivery attempts."
    assert plain.is_empty()
