"""What every test file needs: which SDK this is, and a queue with the steps that tests repeat.

`Queue` waits on what can be observed (a message arrives, a peek shows nothing) and never for a fixed
time. Its waits end with an error after `PATIENCE` seconds.
"""

import os
import time
import uuid
from importlib.metadata import version

from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)

SDK_VERSION = version("azure-servicebus")
PREFIX = {"7.15.0": "python715", "7.14.3": "python714"}[SDK_VERSION]
# 7.14.3 sends its settlements already settled and returns before the broker has seen them.
AWAITS_SETTLEMENT = SDK_VERSION != "7.14.3"
PATIENCE = 30

DEAD_LETTER = ServiceBusSubQueue.DEAD_LETTER
RECEIVE_AND_DELETE = ServiceBusReceiveMode.RECEIVE_AND_DELETE


def connection_string():
    return os.environ["RAILBUS_CONNECTION_STRING"]


def connect(text=None, **options):
    return ServiceBusClient.from_connection_string(text or connection_string(), **options)


def message(body="body", **options):
    """A message with an id that no other test or run has used."""
    return ServiceBusMessage(body, **{"message_id": str(uuid.uuid4()), **options})


def body_of(received):
    return b"".join(received.body)


def eventually(condition, what):
    """Asks `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} s"
        time.sleep(0.05)


class Queue:
    """One queue of the broker, seen through a client of the SDK.

    A link takes this SDK half a second to open, so those of the steps below stay open for the next test.
    """

    def __init__(self, client, name):
        self.client = client
        self.name = name
        self.sender = None
        self.observers = {}

    def send(self, *messages):
        if not self.sender:
            self.sender = self.client.get_queue_sender(self.name).__enter__()
        for one in messages:
            self.sender.send_messages(one)

    def receiver(self, **options):
        """A receiver of the test's own."""
        return self.client.get_queue_receiver(self.name, **options)

    def observer(self, sub_queue):
        """Takes in receive-and-delete and peeks; it holds no credit between its calls."""
        if sub_queue not in self.observers:
            receiver = self.receiver(receive_mode=RECEIVE_AND_DELETE, sub_queue=sub_queue)
            self.observers[sub_queue] = receiver.__enter__()
        return self.observers[sub_queue]

    def take(self, count=1, sub_queue=None):
        """Receives exactly `count` messages in receive-and-delete."""
        return receive(self.observer(sub_queue), count)

    def peek(self, sub_queue=None):
        return self.observer(sub_queue).peek_messages(max_message_count=250, sequence_number=1)

    def is_empty(self):
        return not self.peek()

    def clear(self):
        """Removes everything, also what an interrupted run left locked, deferred or dead-lettered."""
        for sub_queue in (None, DEAD_LETTER):
            while left := self.peek(sub_queue):
                # This asks for more than there may be, and credit left over would take what comes later.
                with self.receiver(receive_mode=RECEIVE_AND_DELETE, sub_queue=sub_queue) as receiver:
                    remove(receiver, left)


def receive(receiver, count=1):
    """Receives exactly `count` messages, in as many calls as the SDK needs."""
    received = []
    deadline = time.monotonic() + PATIENCE
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} messages within {PATIENCE} s"
        received += receiver.receive_messages(max_message_count=count - len(received), max_wait_time=5)
    return received


def remove(receiver, peeked):
    deferred = [one.sequence_number for one in peeked if one.state == ServiceBusMessageState.DEFERRED]
    if deferred:
        receiver.receive_deferred_messages(deferred)
    else:
        receiver.receive_messages(max_message_count=100, max_wait_time=1)


def wait_until_passed(moment):
    """Waits until the wall clock is past `moment`, a time that the broker has announced."""
    while (left := moment.timestamp() - time.time()) >= 0:
        time.sleep(left + 0.01)
