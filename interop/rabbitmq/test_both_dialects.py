"""One queue, a client of each dialect. (docs/spec/rabbitmq.md#16)"""

import os

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from rabbitmq_amqp_python_client import AddressHelper, QuorumQueueSpecification

from support import fresh, message, take


@pytest.fixture
def azure():
    with ServiceBusClient.from_connection_string(os.environ["RAILBUS_CONNECTION_STRING"]) as client:
        yield client


def test_what_azures_sdk_sends_a_rabbitmq_client_consumes(azure, queue):
    with azure.get_queue_sender(queue) as sender:
        sender.send_messages(ServiceBusMessage(b"from azure", subject="s", application_properties={"key": "value"}))
    (received,) = take(queue, "accept")
    assert (received.body, received.subject) == (b"from azure", "s")
    assert received.application_properties == {"key": "value"}


def test_what_a_rabbitmq_client_publishes_azures_sdk_receives(azure, connection, queue):
    connection.publisher(AddressHelper.queue_address(queue)).publish(message(b"from rabbitmq", subject="s"))
    with azure.get_queue_receiver(queue, max_wait_time=30) as receiver:
        received = next(receiver)
        assert (b"".join(received.body), received.subject) == (b"from rabbitmq", "s")
        receiver.complete_message(received)


def test_a_dead_letter_of_one_client_is_read_by_the_other(azure, connection, management, queue):
    name = fresh("dying")
    specification = QuorumQueueSpecification(name=name, dead_letter_exchange="", dead_letter_routing_key=queue)
    management.declare_queue(specification)
    publisher = connection.publisher(AddressHelper.queue_address(name))
    publisher.publish(message(b"bad"))
    publisher.close()
    take(name, "discard")
    with azure.get_queue_receiver(queue, max_wait_time=30) as receiver:
        dead = next(receiver)
        assert dead.dead_letter_reason == "rejected"
        receiver.complete_message(dead)
    # A client that discards is not told when it is done, so the queue is there until its dead letter has come.
    management.delete_queue(name)
