"""Locks: what the SDK says when one has run out, and how renewal keeps one.

The SDK refuses to settle past `locked_until_utc` by its own clock, before it asks the broker. Where a test
wants the broker's answer it takes that check away with `ask_the_broker`.
"""

import pytest

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.exceptions import MessageLockLostError

from support import AWAITS_SETTLEMENT, eventually, message, receive, wait_until_passed


@pytest.fixture
def ask_the_broker(monkeypatch):
    monkeypatch.setattr(ServiceBusReceivedMessage, "_lock_expired", property(lambda _: False))


def test_settling_after_the_lock_ran_out_is_lock_lost(shortlock):
    sent = message()
    shortlock.send(sent)
    with shortlock.receiver() as late, shortlock.receiver() as next_one:
        (received,) = receive(late)
        wait_until_passed(received.locked_until_utc)
        with pytest.raises(MessageLockLostError):
            late.complete_message(received)
        (again,) = receive(next_one)
        assert again.message_id == sent.message_id
        assert again.delivery_count == 1
        next_one.complete_message(again)
        eventually(shortlock.is_empty, "the removal of the completed message")


def test_a_late_settlement_does_not_touch_the_next_holder(shortlock, ask_the_broker):
    shortlock.send(message())
    with shortlock.receiver() as late, shortlock.receiver() as next_one:
        (received,) = receive(late)
        (again,) = receive(next_one)
        assert again.sequence_number == received.sequence_number
        if AWAITS_SETTLEMENT:
            with pytest.raises(MessageLockLostError):
                late.complete_message(received)
            with pytest.raises(MessageLockLostError):
                late.abandon_message(received)
        else:
            late.complete_message(received)
        # Asked on the late receiver's own connection, so the broker has seen its settlement by now.
        assert len(late.peek_messages(max_message_count=1, sequence_number=1)) == 1
        next_one.complete_message(again)
        eventually(shortlock.is_empty, "the removal of the completed message")


def test_renewing_a_lock_that_ran_out_is_lock_lost(shortlock, ask_the_broker):
    shortlock.send(message())
    with shortlock.receiver() as late, shortlock.receiver() as next_one:
        (received,) = receive(late)
        (again,) = receive(next_one)
        with pytest.raises(MessageLockLostError):
            late.renew_message_lock(received)
        next_one.complete_message(again)


def test_a_renewed_lock_outlives_the_first_one(shortlock):
    sent = message()
    shortlock.send(sent)
    with shortlock.receiver() as holder, shortlock.receiver() as other:
        (received,) = receive(holder)
        first = received.locked_until_utc
        while received.locked_until_utc.timestamp() < first.timestamp() + 2:
            assert other.receive_messages(max_message_count=1, max_wait_time=1) == []
            renewed = holder.renew_message_lock(received)
            assert renewed == received.locked_until_utc
        wait_until_passed(first)
        assert other.receive_messages(max_message_count=1, max_wait_time=0.5) == []
        holder.complete_message(received)
        eventually(shortlock.is_empty, "the removal of the completed message")


def test_a_deferred_message_is_renewed_and_settled_by_its_token(plain):
    plain.send(message())
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        receiver.defer_message(received)
        eventually(lambda: plain.peek()[0].state.name == "DEFERRED", "the deferral")
        (deferred,) = receiver.receive_deferred_messages(received.sequence_number)
        before = deferred.locked_until_utc
        assert receiver.renew_message_lock(deferred) >= before
        receiver.complete_message(deferred)
    assert plain.is_empty()
