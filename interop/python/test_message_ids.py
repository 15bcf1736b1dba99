"""Message ids: a message that is sent without one gets one from the broker, which stays the same.

A `ServiceBusMessage` makes an id of its own, so what is sent here is an `AmqpAnnotatedMessage`.
"""

import re
from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus.amqp import AmqpAnnotatedMessage

from support import DEAD_LETTER, Queue, connect, receive
from virtual_clock import Broker


@pytest.fixture(scope="module")
def client(broker):
    with connect(broker.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def orders(client):
    return Queue(client, "orders")


@pytest.fixture(scope="module")
def sender(client):
    with client.get_queue_sender("orders") as sender:
        yield sender


@pytest.fixture(scope="module")
def receiver(orders):
    with orders.receiver() as receiver:
        yield receiver


def without_id(body=b"body", **sections):
    return AmqpAnnotatedMessage(data_body=body, **sections)


def ids(messages):
    return [one.message_id for one in messages]


def assert_assigned(ids):
    assert all(re.fullmatch("[0-9a-fA-F]{32}", one) for one in ids)
    assert len(set(ids)) == len(ids)


def send_alone(sender):
    for _ in range(3):
        sender.send_messages(without_id())


def send_in_a_list(sender):
    sender.send_messages([without_id() for _ in range(3)])


def send_in_a_batch(sender):
    batch = sender.create_message_batch()
    for _ in range(3):
        batch.add_message(without_id())
    sender.send_messages(batch)


def send_with_a_time(sender):
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    sender.send_messages([without_id(annotations={"x-opt-scheduled-enqueue-time": later}) for _ in range(3)])


@pytest.mark.parametrize("send", [send_alone, send_in_a_list, send_in_a_batch, send_with_a_time])
def test_messages_sent_without_ids_get_ids_that_stay(broker, orders, sender, receiver, send):
    send(sender)
    peeked = ids(orders.peek())
    assert len(peeked) == 3
    assert_assigned(peeked)
    broker.advance("PT61M")
    first = receive(receiver, 3)
    assert ids(first) == peeked
    for one in first:
        receiver.abandon_message(one)
    second = receive(receiver, 3)
    assert ids(second) == peeked
    for one in second:
        receiver.defer_message(one)
    third = receiver.receive_deferred_messages([one.sequence_number for one in second])
    assert ids(third) == peeked
    for one in third:
        receiver.dead_letter_message(one)
    assert ids(orders.take(3, sub_queue=DEAD_LETTER)) == peeked


def test_an_id_that_the_sender_gave_is_kept(orders, sender):
    sender.send_messages(without_id(properties={"message_id": "given"}))
    sender.send_messages(without_id(properties={"message_id": ""}))
    assert ids(orders.take(2)) == ["given", ""]


def test_messages_without_ids_are_no_duplicates(client):
    once = Queue(client, "once")
    once.send(without_id(b"same"), without_id(b"same"), [without_id(b"same"), without_id(b"same")])
    assert_assigned(ids(once.take(4)))


def test_a_forwarded_message_and_a_forwarded_dead_letter_keep_their_ids(client):
    target, mortal = Queue(client, "target"), Queue(client, "mortal")
    Queue(client, "forward").send(without_id())
    (forwarded,) = target.take()
    mortal.send(without_id())
    with mortal.receiver() as receiver:
        (doomed,) = receive(receiver)
        receiver.dead_letter_message(doomed)
        assert_assigned(ids([forwarded, doomed]))
        assert ids(target.take()) == ids([doomed])


def test_copies_of_a_message_have_its_id_forwarded_ones_too():
    with Broker("topics.json") as broker, connect(broker.connection_string) as client:
        with client.get_topic_sender("events") as sender:
            sender.send_messages(without_id(properties={"subject": "archived"}))
        with client.get_subscription_receiver("events", "all") as subscription:
            (copy,) = receive(subscription)
            subscription.complete_message(copy)
        (archived,) = Queue(client, "archive").take()
        assert_assigned(ids([copy]))
        assert ids([archived]) == ids([copy])
