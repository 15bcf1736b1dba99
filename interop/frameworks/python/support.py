"""What every test file needs: clients of the SDK, and looks at a queue from outside.

Waits are on what can be observed and end with an error after `PATIENCE` seconds.
"""

import os
import time

from azure.servicebus import ServiceBusClient, ServiceBusSubQueue
from azure.servicebus.management import ServiceBusAdministrationClient

PATIENCE = 60
CONNECTION_STRING = os.environ["RAILBUS_CONNECTION_STRING"]


def connect(text=CONNECTION_STRING):
    return ServiceBusClient.from_connection_string(text)


def administer(text=CONNECTION_STRING):
    return ServiceBusAdministrationClient.from_connection_string(text)


def eventually(condition, what):
    """Asks `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} s"
        time.sleep(0.05)


def peek(client, queue, **options):
    """The messages of a queue, whoever holds them."""
    with client.get_queue_receiver(queue, **options) as receiver:
        return receiver.peek_messages(max_message_count=50, sequence_number=1)


def peek_dead(client, queue):
    return peek(client, queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER)


def body_of(message):
    return b"".join(message.body)
