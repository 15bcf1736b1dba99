"""A test suite that uses Azure Service Bus, without it."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue


@pytest.fixture
def client(fresh_railbus):
    with ServiceBusClient.from_connection_string(fresh_railbus.connection_string) as client:
        yield client


def receive(client, **options):
    """The bodies of the messages that are there, which are completed."""
    with client.get_queue_receiver("orders", **options) as receiver:
        messages = receiver.receive_messages(max_message_count=10, max_wait_time=10)
        for message in messages:
            receiver.complete_message(message)
        return [str(message) for message in messages]


def is_empty(client):
    with client.get_queue_receiver("orders") as receiver:
        return receiver.peek_messages() == []


def test_an_order_arrives(client):
    client.get_queue_sender("orders").send_messages(ServiceBusMessage("one espresso"))
    assert receive(client) == ["one espresso"]


def test_the_next_test_finds_an_empty_queue(client):
    assert is_empty(client)


def test_an_order_that_stays_for_a_day_is_a_dead_letter(client, fresh_railbus):
    client.get_queue_sender("orders").send_messages(ServiceBusMessage("one espresso"))
    fresh_railbus.advance(timedelta(days=1))
    assert is_empty(client)
    assert receive(client, sub_queue=ServiceBusSubQueue.DEAD_LETTER) == ["one espresso"]


def test_tests_may_share_a_broker(railbus):
    with ServiceBusClient.from_connection_string(railbus.connection_string) as client:
        client.get_queue_sender("orders").send_messages(ServiceBusMessage("two espressi"))
        assert receive(client) == ["two espressi"]


def test_a_busy_broker_is_asked_again(railbus_namespace):
    railbus_namespace.fault("busy", {"refuse": "server-busy"}, entity="orders", operations=["send"], times=1)
    with ServiceBusClient.from_connection_string(railbus_namespace.connection_string, retry_backoff_factor=0.01) as client:
        client.get_queue_sender("orders").send_messages(ServiceBusMessage("one espresso"))
        assert receive(client) == ["one espresso"]
    (busy,) = railbus_namespace.faults()
    assert busy["injected"] == 1
