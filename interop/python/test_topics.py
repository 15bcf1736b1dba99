"""Topics: subscriptions with SQL and correlation filters, actions, sessions, dead letters and forwarding."""

from datetime import timedelta

import pytest

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from support import DEAD_LETTER, body_of, connect, message, receive

ENTITIES = "topics.json"
TOPIC = "events"


@pytest.fixture(scope="module")
def client(broker):
    with connect(broker.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def sender(client):
    with client.get_topic_sender(TOPIC) as sender:
        yield sender


def take(client, subscription, count=1, **options):
    """Receives and completes so many messages."""
    with client.get_subscription_receiver(TOPIC, subscription, **options) as receiver:
        taken = receive(receiver, count)
        for received in taken:
            receiver.complete_message(received)
        return taken


def peek(client, subscription):
    with client.get_subscription_receiver(TOPIC, subscription) as receiver:
        return receiver.peek_messages(100)


def test_every_subscription_that_selects_a_message_gets_its_copy(client, sender):
    sender.send_messages(
        [
            message("small", subject="order", application_properties={"amount": 5, "colour": "red"}),
            message("big", subject="order", application_properties={"amount": 500, "colour": "blue"}),
        ]
    )
    assert [body_of(copy) for copy in take(client, "all", 2)] == [b"small", b"big"]
    (red,) = take(client, "red")
    assert body_of(red) == b"small"
    (big,) = take(client, "big")
    assert body_of(big) == b"big"
    assert big.subject == "big order"
    assert big.application_properties[b"priority"] == b"high"
    assert big.application_properties[b"RuleName"] == b"amount"
    assert peek(client, "red") == []


def test_dead_letters_are_those_of_one_subscription(client, sender):
    sender.send_messages(message("poison", subject="order", application_properties={"colour": "red"}))
    with client.get_subscription_receiver(TOPIC, "red") as receiver:
        (poison,) = receive(receiver)
        receiver.dead_letter_message(poison, reason="bad", error_description="very")
    (dead,) = take(client, "red", sub_queue=DEAD_LETTER)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("bad", "very")
    (alive,) = take(client, "all")
    assert body_of(alive) == b"poison"


def test_a_copy_is_locked_abandoned_and_dead_lettered_like_a_queues_message(client, sender):
    sent = message("again")
    sender.send_messages(sent)
    with client.get_subscription_receiver(TOPIC, "all") as receiver:
        for _ in range(2):
            (received,) = receive(receiver)
            receiver.abandon_message(received)
    (dead,) = take(client, "all", sub_queue=DEAD_LETTER)
    assert dead.message_id == sent.message_id
    assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"


def test_sessions_of_a_subscription_are_received_in_order(client, sender):
    sender.send_messages([message(str(number), session_id="s") for number in range(3)])
    taken = take(client, "sessions", 3, session_id="s")
    assert [body_of(copy) for copy in taken] == [b"0", b"1", b"2"]
    take(client, "all", 3)


def test_a_subscription_forwards_to_a_queue(client, sender):
    sender.send_messages(message("kept", subject="archived"))
    with client.get_queue_receiver("archive") as receiver:
        (kept,) = receive(receiver)
        receiver.complete_message(kept)
    assert body_of(kept) == b"kept"
    take(client, "all")


def test_what_is_scheduled_waits_at_the_topic(broker, client, sender):
    from datetime import datetime, timezone

    later = datetime.now(timezone.utc) + timedelta(hours=1)
    sender.schedule_messages(message("later"), later)
    assert peek(client, "all") == []
    broker.advance("PT61M")
    (received,) = take(client, "all")
    assert body_of(received) == b"later"


def test_nobody_receives_from_a_topic(client):
    with pytest.raises(ServiceBusError) as refused:
        with client.get_queue_receiver(TOPIC) as receiver:
            receiver.receive_messages(max_wait_time=1)
    assert "is a topic" in str(refused.value)


def test_nobody_sends_to_a_subscription(client):
    with pytest.raises(ServiceBusError) as refused:
        with client.get_queue_sender(f"{TOPIC}/Subscriptions/all") as sender:
            sender.send_messages(ServiceBusMessage("x"))
    assert "is a subscription" in str(refused.value)
