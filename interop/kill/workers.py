"""Senders and receivers: threads that work while the gate is open and wait while it is shut.

Each has its own client with the SDK's retries off, so that one call is one attempt. An error of the SDK
ends the connection, never the worker. A violation is kept for the main thread.
"""

import threading
import time
import uuid

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from ledger import Violation, body_for

QUEUE = "kill-orders"


class Gate:
    """Open while the broker is up. `shut` returns when every worker has noticed."""

    def __init__(self, workers):
        self.condition = threading.Condition()
        self.workers = workers
        self.waiting = 0
        self.is_open = False
        self.is_over = False

    def enter(self):
        """Waits until the gate is open; false when the run is over."""
        with self.condition:
            self.waiting += 1
            self.condition.notify_all()
            self.condition.wait_for(lambda: self.is_open or self.is_over)
            self.waiting -= 1
            return not self.is_over

    def open(self):
        with self.condition:
            self.is_open = True
            self.condition.notify_all()

    def shut(self, patience):
        with self.condition:
            self.is_open = False
            if not self.condition.wait_for(lambda: self.waiting == self.workers, patience):
                raise RuntimeError(f"{self.workers - self.waiting} clients did not notice the kill within {patience} s")

    def end(self):
        with self.condition:
            self.is_over = True
            self.condition.notify_all()


class Worker(threading.Thread):
    def __init__(self, broker, gate, ledger, failures):
        super().__init__(daemon=True)
        self.broker = broker
        self.gate = gate
        self.ledger = ledger
        self.failures = failures
        self.last_error = None

    def run(self):
        while self.gate.enter():
            try:
                with connect(self.broker) as client:
                    self.work(client)
            except (ServiceBusError, OSError) as error:
                # The broker is gone; what was under way stays unreturned in the ledger.
                self.last_error = error
            except Exception as failure:
                self.failures.append(failure)

    def work(self, client):
        raise NotImplementedError


class Sender(Worker):
    def work(self, client):
        with client.get_queue_sender(QUEUE) as sender:
            while self.gate.is_open:
                message_id = str(uuid.uuid4())
                self.ledger.sending(message_id)
                sender.send_messages(ServiceBusMessage(body_for(message_id), message_id=message_id), timeout=20)
                self.ledger.sent(message_id)


class Receiver(Worker):
    def work(self, client):
        opened_at = time.monotonic()
        with client.get_queue_receiver(QUEUE) as receiver:
            while self.gate.is_open:
                for message in receiver.receive_messages(max_message_count=5, max_wait_time=1):
                    complete(receiver, message, self.ledger, opened_at)


def complete(receiver, message, ledger, opened_at):
    """Completes `message`, noting each step. Returns its id."""
    message_id = message.message_id
    ledger.received(message_id, message.sequence_number, opened_at)
    check_body(message)
    ledger.completing(message_id)
    receiver.complete_message(message)
    ledger.completed(message_id, time.monotonic())
    return message_id


def check_body(message):
    if b"".join(message.body) != body_for(message.message_id):
        raise Violation(f"the body of {message.message_id} is not what was sent")


def connect(broker):
    return ServiceBusClient.from_connection_string(broker.connection_string, retry_total=0)


def peek_all(broker, sub_queue=None):
    """Everything in the queue as `(message id, sequence number)`, in order."""
    present = []
    next_number = 1
    with connect(broker) as client, client.get_queue_receiver(QUEUE, sub_queue=sub_queue) as receiver:
        while page := receiver.peek_messages(max_message_count=250, sequence_number=next_number):
            for message in page:
                check_body(message)
                present.append((message.message_id, message.sequence_number))
            next_number = page[-1].sequence_number + 1
    return present


def drain(broker, ledger, count):
    """Receives and completes `count` messages and returns their ids."""
    drained = []
    opened_at = time.monotonic()
    with connect(broker) as client, client.get_queue_receiver(QUEUE) as receiver:
        while len(drained) < count:
            batch = receiver.receive_messages(max_message_count=100, max_wait_time=10)
            if not batch:
                raise Violation(f"{count - len(drained)} messages are counted but not delivered")
            drained += [complete(receiver, message, ledger, opened_at) for message in batch]
    return drained
