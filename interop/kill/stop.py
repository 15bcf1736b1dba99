"""The stop test: a broker that is asked to stop under load stores no message twice.

Senders work over plain TCP, TLS and WebSocket, with the SDK's own retries. The broker gets SIGTERM while their sends are
under way, and is started again; the SDK sends again what had no answer. In the end the whole queue is counted: a message
whose send returned is there once, one whose send raised is there once or not at all, and none is there twice.
"""

import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter

from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType
from azure.servicebus.exceptions import ServiceBusError

from broker import PATIENCE, Broker
from ledger import Violation, body_for
from workers import QUEUE, Gate, peek_all

# Of each transport; half of them send several messages at a time.
SENDERS = 4
SEVERAL = 8
LONGEST_RUN_S = 0.5
TRANSPORTS = ("plain", "tls", "websocket")


class Book:
    """What the senders know: when each send began, and how it ended."""

    def __init__(self):
        self.lock = threading.Lock()
        self.under_way = {}
        self.returned = {}
        self.raised = {}

    def begin(self, ids):
        with self.lock:
            self.under_way.update(dict.fromkeys(ids, time.monotonic()))

    def end(self, ids, outcomes):
        """Notes for each message when its send began and when it ended."""
        with self.lock:
            for message_id in ids:
                outcomes[message_id] = (self.under_way.pop(message_id), time.monotonic())

    def count(self, present):
        """Checks all that is in the queue, no send being under way."""
        copies = Counter(message_id for message_id, _ in present)
        twice = [message_id for message_id, number in copies.items() if number > 1]
        missing = [message_id for message_id in self.returned if not copies[message_id]]
        unknown = [message_id for message_id in copies if message_id not in self.returned and message_id not in self.raised]
        if twice or missing or unknown:
            raise Violation(f"stored twice: {twice}; returned and missing: {missing}; never sent: {unknown}")


class Sender(threading.Thread):
    """Sends while the gate is open. An error of the SDK ends the connection, never the thread."""

    def __init__(self, broker, gate, book, failures, transport, at_once):
        super().__init__(daemon=True)
        self.broker = broker
        self.gate = gate
        self.book = book
        self.failures = failures
        self.transport = transport
        self.at_once = at_once

    def run(self):
        while self.gate.enter():
            try:
                with connect(self.broker, self.transport) as client, client.get_queue_sender(QUEUE) as sender:
                    while self.gate.is_open:
                        self.send(sender)
            except (ServiceBusError, OSError):
                pass
            except Exception as failure:
                self.failures.append(failure)

    def send(self, sender):
        ids = [f"{self.transport}-{uuid.uuid4()}" for _ in range(self.at_once)]
        messages = [ServiceBusMessage(body_for(message_id), message_id=message_id) for message_id in ids]
        self.book.begin(ids)
        try:
            sender.send_messages(messages if self.at_once > 1 else messages[0])
        except BaseException:
            self.book.end(ids, self.book.raised)
            raise
        self.book.end(ids, self.book.returned)


def connect(broker, transport):
    if transport == "plain":
        return ServiceBusClient.from_connection_string(broker.connection_string)
    return ServiceBusClient.from_connection_string(
        broker.connection_string.replace("UseDevelopmentEmulator=true;", ""),
        custom_endpoint_address=f"sb://localhost:{broker.port}",
        connection_verify=str(broker.directory / "data" / "tls" / "ca.pem"),
        transport_type=TransportType.AmqpOverWebsocket if transport == "websocket" else TransportType.Amqp,
    )


def main():
    seed = int(os.environ.get("RAILBUS_KILL_SEED") or random.SystemRandom().randrange(2**32))
    stops = int(os.environ.get("RAILBUS_STOP_CYCLES", "8"))
    print(f"stop test: seed {seed}, {stops} stops", flush=True)
    # The SDK logs every broken connection as an error; here they are the point.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    directory = tempfile.mkdtemp(prefix="railbus-stop-")
    broker = Broker(directory)
    try:
        run(broker, random.Random(seed), stops)
    except Exception:
        print(f"seed {seed}; the data directory and the broker's log are kept in {directory}", file=sys.stderr)
        raise
    finally:
        broker.abandon()
    shutil.rmtree(directory)


def run(broker, rng, stops):
    book, failures = Book(), []
    kinds = [(transport, SEVERAL if number % 2 else 1) for transport in TRANSPORTS for number in range(SENDERS)]
    gate = Gate(len(kinds))
    broker.start()
    for transport, at_once in kinds:
        Sender(broker, gate, book, failures, transport, at_once).start()
    gate.open()
    try:
        spans = [stop_and_start(broker, book, rng) for _ in range(stops)]
        wait_for_sends(book)
    finally:
        gate.shut(PATIENCE)
        gate.end()
    if failures:
        raise failures[0]
    book.count(peek_all(broker))
    broker.stop()
    report(book, spans)


def stop_and_start(broker, book, rng):
    """Stops a broker that all transports send to. Returns when it was asked to, and when it was there again."""
    wait_for_sends(book)
    time.sleep(rng.uniform(0, LONGEST_RUN_S))
    stopped_at = time.monotonic()
    code = broker.stop()
    if code != 0:
        raise Violation(f"asked to stop, the broker exited with {code}\n{broker.last_words()}")
    broker.start()
    return stopped_at, time.monotonic()


def wait_for_sends(book):
    """Waits until one more send of each transport has returned."""
    before = sends(book)
    deadline = time.monotonic() + PATIENCE
    while any(sends(book)[transport] == before[transport] for transport in TRANSPORTS):
        if time.monotonic() > deadline:
            raise Violation(f"no send returned within {PATIENCE} s: {before}, then {sends(book)}")
        time.sleep(0.005)


def sends(book):
    with book.lock:
        return Counter(message_id.partition("-")[0] for message_id in book.returned)


def report(book, spans):
    """A stop that met no send proves nothing: of each transport, some were under way, and some came too late."""
    met, late = Counter(), Counter()
    for message_id, (began, ended) in book.returned.items():
        transport = message_id.partition("-")[0]
        met[transport] += any(began < stopped < ended for stopped, _ in spans)
        late[transport] += any(began < ready < ended for _, ready in spans)
    print(f"returned {dict(sends(book))}, of them under way when the broker was asked to stop {dict(met)}, and answered by the "
          f"next one {dict(late)}; raised {len(book.raised)}; stored twice: 0")
    for transport in TRANSPORTS:
        if not met[transport] or not late[transport]:
            raise Violation(f"no send over {transport} was under way at a stop, or none was answered after it")
    print("stop test passed")


if __name__ == "__main__":
    main()
