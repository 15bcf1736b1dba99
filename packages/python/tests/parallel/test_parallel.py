"""Two suites of 200 tests that run at the same time on one broker, with the same queues and the same message ids.

Each test of the first has a namespace of its own. The others use one namespace for each worker, which is reset before every test. Each
lets hours pass, and others than its neighbours.
"""

from datetime import timedelta

import pytest
import railbus
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

EACH = range(200)


@pytest.fixture
def own(address):
    with railbus.create_namespace(address) as namespace:
        yield namespace


@pytest.fixture(scope="session")
def of_this_worker(address):
    with railbus.create_namespace(address) as namespace:
        yield namespace


@pytest.fixture
def after_reset(of_this_worker):
    of_this_worker.reset()
    return of_this_worker


def sees_only_its_own_messages(namespace, test):
    """Leaves a message and a dead letter behind, for a test that would see them."""
    bodies = [f"{test} {number}" for number in range(3)]
    with ServiceBusClient.from_connection_string(namespace.connection_string) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages([ServiceBusMessage(body, message_id=str(id)) for id, body in enumerate(bodies)])
        with client.get_queue_receiver("orders") as receiver:
            assert [str(message) for message in receiver.peek_messages(10)] == bodies
            (first,) = receiver.receive_messages(max_message_count=1, max_wait_time=30)
            assert (str(first), first.sequence_number) == (bodies[0], 1)
            receiver.dead_letter_message(first, reason=test)
            left = [str(message) for message in receiver.peek_messages(10)]
            assert left == bodies[1:]
        with client.get_queue_receiver("orders", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            assert [message.dead_letter_reason for message in receiver.peek_messages(10)] == [test]


def sees_only_its_own_time(namespace, number):
    """Lets a time to live end, and another not."""
    hours = timedelta(hours=number + 1)
    times = {"short": hours, "long": hours + timedelta(hours=1)}
    with ServiceBusClient.from_connection_string(namespace.connection_string) as client:
        with client.get_queue_sender("timed") as sender:
            sender.send_messages([ServiceBusMessage(body, time_to_live=time) for body, time in times.items()])
        with client.get_queue_receiver("timed") as receiver:
            assert [str(message) for message in receiver.peek_messages(10)] == ["short", "long"]
            namespace.advance(hours)
            assert [str(message) for message in receiver.peek_messages(10, sequence_number=1)] == ["long"]


@pytest.mark.parametrize("number", EACH)
def test_in_a_namespace_of_its_own(own, number):
    sees_only_its_own_messages(own, f"own {number}")
    sees_only_its_own_time(own, number)


@pytest.mark.parametrize("number", EACH)
def test_after_a_reset(after_reset, number):
    sees_only_its_own_messages(after_reset, f"reset {number}")
    sees_only_its_own_time(after_reset, number)
