"""Airflow: the hooks of its Azure provider, with a connection from the environment as operators use them."""

import json

import pytest
from airflow.providers.microsoft.azure.hooks.asb import AdminClientHook, MessageHook

from azure.servicebus import ServiceBusMessage

from support import CONNECTION_STRING, body_of, peek


@pytest.fixture(autouse=True)
def connection(monkeypatch):
    # Airflow keeps the connection string in the field it calls schema.
    text = json.dumps({"conn_type": "azure_service_bus", "schema": CONNECTION_STRING})
    monkeypatch.setenv("AIRFLOW_CONN_AZURE_SERVICE_BUS_DEFAULT", text)


def test_the_administration_hook_makes_and_removes_entities(administration, fresh):
    hook = AdminClientHook()
    queue, topic = fresh("airflow"), fresh("airflow")
    assert hook.create_queue(queue, max_delivery_count=4).max_delivery_count == 4
    assert hook.create_topic(topic) == topic
    assert hook.create_topic(topic) == topic
    hook.create_subscription(topic, "all")
    hook.update_subscription(topic, "all", max_delivery_count=7)
    assert administration.get_subscription(topic, "all").max_delivery_count == 7
    hook.delete_subscription("all", topic)
    hook.delete_queue(queue)
    assert list(administration.list_subscriptions(topic)) == []
    assert queue not in [one.name for one in administration.list_queues()]
    administration.delete_topic(topic)


def test_messages_are_sent_one_by_one_and_as_a_batch_and_read(queue, client):
    hook = MessageHook()
    hook.send_message(queue, "one", message_id="first", message_headers={"run": 1})
    hook.send_message(queue, ["two", "three"], batch_message_flag=True)
    first = hook.read_message(queue, max_wait_time=30)
    assert (body_of(first), first.message_id, first.application_properties) == (b"one", "first", {b"run": 1})
    assert [body_of(hook.read_message(queue, max_wait_time=30)) for _ in range(2)] == [b"two", b"three"]
    assert peek(client, queue) == []


def test_a_message_whose_callback_fails_comes_again(queue, client):
    hook = MessageHook()
    hook.send_message(queue, "work")
    seen = []

    def callback(message, context):
        seen.append(message.delivery_count)
        if len(seen) == 1:
            raise ValueError("no")

    with pytest.raises(ValueError):
        hook.receive_message(queue, {}, max_wait_time=30, message_callback=callback)
    hook.receive_message(queue, {}, max_wait_time=30, message_callback=callback)
    assert len(seen) == 2
    assert peek(client, queue) == []


def test_a_subscription_is_read(topic, client):
    hook = MessageHook()
    with client.get_topic_sender(topic) as sender:
        sender.send_messages(ServiceBusMessage("event", application_properties={"colour": "red"}))
    read = hook.read_subscription_message(topic, "red", max_wait_time=30)
    assert body_of(read) == b"event"
    seen = []
    hook.receive_subscription_message(
        topic, "all", {}, max_message_count=1, max_wait_time=30, message_callback=lambda message, _: seen.append(message)
    )
    assert [body_of(message) for message in seen] == [b"event"]
