"""A suite of 200 tests that run at the same time on one broker, with the same queue and the same message ids.

Each of the first hundred has a namespace of its own. The others use one namespace for each worker, which is reset before every test.
"""

import pytest
import railbus
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

EACH = range(100)


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


@pytest.mark.parametrize("number", EACH)
def test_in_a_namespace_of_its_own(own, number):
    sees_only_its_own_messages(own, f"own {number}")


@pytest.mark.parametrize("number", EACH)
def test_after_a_reset(after_reset, number):
    sees_only_its_own_messages(after_reset, f"reset {number}")
