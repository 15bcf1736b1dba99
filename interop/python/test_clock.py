"""The virtual clock: a day's time to live and a lock of five minutes, without sleeping.

The links are opened once, since this SDK takes half a second for each.
"""

import pytest

from azure.servicebus.exceptions import MessageLockLostError

from support import AWAITS_SETTLEMENT, DEAD_LETTER, connect, message, receive


@pytest.fixture(scope="module")
def client(broker):
    with connect(broker.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def sender(client):
    with client.get_queue_sender("orders") as sender:
        yield sender


@pytest.fixture(scope="module")
def receiver(client):
    with client.get_queue_receiver("orders") as receiver:
        yield receiver


@pytest.fixture(scope="module")
def dead_letters(client):
    with client.get_queue_receiver("orders", sub_queue=DEAD_LETTER) as receiver:
        yield receiver


def test_a_message_expires_when_its_day_has_passed(broker, sender, dead_letters):
    sent = message()
    sender.send_messages(sent)
    broker.advance("P1D")
    (dead,) = receive(dead_letters)
    assert dead.message_id == sent.message_id
    assert dead.dead_letter_reason == "TTLExpiredException"
    dead_letters.complete_message(dead)


def test_a_lock_is_lost_when_its_five_minutes_have_passed(broker, sender, receiver):
    sent = message()
    sender.send_messages(sent)
    (late,) = receive(receiver)
    broker.advance("PT5M")
    if AWAITS_SETTLEMENT:
        with pytest.raises(MessageLockLostError):
            receiver.complete_message(late)
    (again,) = receive(receiver)
    assert again.message_id == sent.message_id
    assert again.delivery_count == 1
    receiver.complete_message(again)


def test_a_lock_that_was_renewed_lasts_from_its_renewal(broker, sender, receiver):
    sender.send_messages(message())
    (held,) = receive(receiver)
    broker.advance("PT4M")
    receiver.renew_message_lock(held)
    broker.advance("PT4M")
    receiver.complete_message(held)
    assert receiver.peek_messages(max_message_count=1, sequence_number=1) == []
