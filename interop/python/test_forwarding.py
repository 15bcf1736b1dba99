"""Forwarding: messages and dead letters go on to another queue by themselves."""

import pytest
from azure.servicebus.exceptions import ServiceBusError

from support import PREFIX, message


@pytest.fixture
def target(cleared):
    return cleared("target")


def test_a_message_arrives_where_its_queue_forwards_to(client, target):
    sent = message("hello")
    with client.get_queue_sender(f"{PREFIX}-forward") as sender:
        sender.send_messages(sent)
    (received,) = target.take()
    assert received.message_id == sent.message_id
    assert b"".join(received.body) == b"hello"
    assert received.enqueued_sequence_number > 0
    assert received.delivery_count == 0


def test_a_dead_letter_arrives_with_its_reason_and_its_source(client, target):
    name = f"{PREFIX}-mortal"
    sent = message()
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name, max_wait_time=30) as receiver:
        sender.send_messages(sent)
        (received,) = receiver.receive_messages(1)
        receiver.dead_letter_message(received, reason="broken", error_description="beyond repair")
    (dead,) = target.take()
    assert dead.message_id == sent.message_id
    assert dead.dead_letter_reason == "broken"
    assert dead.dead_letter_error_description == "beyond repair"
    assert dead.dead_letter_source == name


def test_a_receiver_where_messages_go_on_is_refused(client):
    with pytest.raises(ServiceBusError, match="auto-forwarding"):
        with client.get_queue_receiver(f"{PREFIX}-forward", max_wait_time=5) as receiver:
            receiver.receive_messages(1)
