"""A blocking Proton connection by SASL PLAIN, a queue on it, and raw `$management` requests.

Proton knows AMQP 1.0 and nothing of Service Bus, so what an SDK hides is written out here: the settlement
that waits for the broker's answer, the lock token, the request and response links.
"""

import os
import sys
import time
import uuid
from pathlib import Path

from cproton import ffi, lib
from proton import UNDESCRIBED, Array, Condition, Data, Delivery, Link, Message, int32, timestamp, uint, ulong
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import BlockingConnection

# The broker with a clock is that of the Python suite; behind this folder, since modules of both have the same names.
sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

PREFIX = "proton"
PATIENCE = 30
KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"
LOCK_TOKEN = "x-opt-lock-token"
SEQUENCE_NUMBER = "x-opt-sequence-number"
LOCKED_UNTIL = "x-opt-locked-until"
ENQUEUED_TIME = "x-opt-enqueued-time"
ENQUEUED_SEQUENCE_NUMBER = "x-opt-enqueue-sequence-number"
SCHEDULED_TIME = "x-opt-scheduled-enqueue-time"
MESSAGE_STATE = "x-opt-message-state"
ACTIVE, DEFERRED, SCHEDULED = 0, 1, 2
# What is said of the lock of a message that nobody holds, and of one whose session is held, in milliseconds since
# 1970: the beginning of the year 1 and the end of the year 9999.
UNLOCKED, WITH_SESSION = -62135596800000, 253402300799999


def connect(user=KEY_NAME, password=KEY, mechanisms="PLAIN", address=None):
    address = address or f"{os.environ['RAILBUS_HOST']}:{os.environ['RAILBUS_PORT']}"
    # Cyrus SASL refuses PLAIN without TLS unless it is allowed by name.
    return BlockingConnection(
        address,
        timeout=PATIENCE,
        user=user,
        password=password,
        allowed_mechs=mechanisms,
        allow_insecure_mechs=True,
    )


def message(body="body", **fields):
    """A message with an id that no other test or run has used."""
    return Message(body=body, **{"id": str(uuid.uuid4()), **fields})


class PeekLock(LinkOption):
    """Unsettled deliveries whose outcome the broker confirms before they are settled."""

    def apply(self, link):
        link.snd_settle_mode = Link.SND_UNSETTLED
        link.rcv_settle_mode = Link.RCV_SECOND


class Queue:
    def __init__(self, connection, name):
        self.connection = connection
        self.name = name

    @property
    def dead_letter(self):
        return Queue(self.connection, f"{self.name}/$DeadLetterQueue")

    def sender(self):
        return self.connection.create_sender(self.name, name=str(uuid.uuid4()))

    def send(self, *messages):
        """Sends and awaits `accepted` for each; returns the deliveries."""
        sender = self.sender()
        deliveries = [sender.send(one) for one in messages]
        assert all(one.remote_state == Delivery.ACCEPTED for one in deliveries)
        sender.close()
        return deliveries

    def receiver(self, *options):
        """Peek-lock, and no credit until a test asks for a message."""
        options = [PeekLock(), *options]
        return Receiver(self.connection, self.connection.create_receiver(self.name, name=str(uuid.uuid4()), options=options))

    def deleting_receiver(self):
        return Receiver(self.connection, self.connection.create_receiver(self.name, name=str(uuid.uuid4()), options=AtMostOnce()))

    def take(self, count=1):
        """Receives exactly `count` messages in receive-and-delete."""
        receiver = self.deleting_receiver()
        messages = [receiver.receive().message for _ in range(count)]
        receiver.close()
        return messages

    def management(self):
        return Management(self.connection, self.name)

    def peek(self):
        with self.management() as management:
            return management.peek()

    def clear(self):
        """Removes everything, also what an interrupted run left locked, deferred, scheduled or dead-lettered."""
        for part in (self, self.dead_letter):
            with part.management() as management:
                deadline = time.monotonic() + 90
                while left := management.peek():
                    assert time.monotonic() < deadline, f"{part.name} cannot be emptied"
                    part.remove(management, left)

    def remove(self, management, peeked):
        deferred = [one.annotations[SEQUENCE_NUMBER] for one in peeked if one.annotations[MESSAGE_STATE] == DEFERRED]
        if deferred:
            assert management.receive_by_number(deferred, settle_mode=0).status == 200
            return
        scheduled = [one.annotations[SEQUENCE_NUMBER] for one in peeked if one.annotations[MESSAGE_STATE] == SCHEDULED]
        if scheduled:
            assert management.cancel(scheduled).status == 200
            return
        receiver = self.deleting_receiver()
        while receiver.receive(patience=0.5):
            pass
        receiver.close()


class Received:
    """A message with the delivery that brought it."""

    def __init__(self, message, delivery):
        self.message = message
        self.delivery = delivery

    @property
    def tag(self):
        """The bytes of the delivery tag, of which Proton for Python makes a text."""
        tag = lib.pn_delivery_tag(self.delivery._impl)
        return bytes(ffi.buffer(tag.start, tag.size)) if tag.size else b""

    @property
    def number(self):
        return self.message.annotations[SEQUENCE_NUMBER]

    @property
    def token(self):
        return self.message.instructions[LOCK_TOKEN]

    @property
    def locked_until(self):
        """In milliseconds since 1970."""
        return self.message.annotations[LOCKED_UNTIL]


class Receiver:
    def __init__(self, connection, link):
        self.connection = connection
        self.link = link

    def receive(self, patience=PATIENCE):
        """One message, or nothing when none comes in time; credit that found nothing is drained."""
        fetcher = self.link.fetcher
        if not self.link.link.credit:
            self.link.link.flow(1)
        if not self.wait_for(lambda: fetcher.has_message, patience) and not self.drained():
            return None
        received, delivery = fetcher.incoming.popleft()
        return Received(received, delivery)

    def drained(self):
        """Takes the credit back; true when a message came meanwhile."""
        self.link.link.drain(0)
        self.connection.wait(lambda: not self.link.link.draining(), msg="draining")
        self.link.link.drain_mode = False
        return self.link.fetcher.has_message

    def wait_for(self, condition, patience):
        """Lets the connection work until `condition` holds or `patience` seconds have passed."""
        deadline = time.monotonic() + patience
        while not condition() and (left := deadline - time.monotonic()) > 0:
            self.connection.container.timeout = left
            self.connection.container.process()
        self.connection.container.timeout = PATIENCE
        return condition()

    def settle(self, received, outcome):
        """Sends `outcome` unsettled and awaits the broker's answer: its state and, if refused, its condition."""
        delivery = received.delivery
        delivery.update(outcome)
        self.connection.wait(lambda: delivery.settled, msg="settling")
        state, condition = delivery.remote_state, delivery.remote.condition
        delivery.settle()
        return state, condition and condition.name

    def complete(self, received):
        assert self.settle(received, Delivery.ACCEPTED) == (Delivery.ACCEPTED, None)

    def abandon(self, received, properties=None):
        received.delivery.local.annotations = properties
        assert self.settle(received, Delivery.MODIFIED) == (Delivery.MODIFIED, None)

    def defer(self, received):
        received.delivery.local.undeliverable = True
        assert self.settle(received, Delivery.MODIFIED) == (Delivery.MODIFIED, None)

    def reject(self, received, **info):
        """Dead-letters: the error of the outcome carries reason, description and properties to modify."""
        if info:
            received.delivery.local.condition = Condition("com.microsoft:dead-letter", info=info)
        assert self.settle(received, Delivery.REJECTED) == (Delivery.REJECTED, None)

    def close(self):
        self.link.close()


class Answer:
    def __init__(self, message):
        self.message = message
        # The `$cbs` node spells it as its own contract does.
        self.status = message.properties.get("statusCode", message.properties.get("status-code"))
        self.condition = message.properties.get("errorCondition")
        self.body = message.body


class ReplyTo(LinkOption):
    def __init__(self, address):
        self.address = address

    def apply(self, link):
        link.target.address = self.address


class Requests:
    """The request and response links of a node."""

    def __init__(self, connection, node):
        self.reply_to = f"reply-{uuid.uuid4()}"
        self.requests = connection.create_sender(node, name=str(uuid.uuid4()))
        self.answers = connection.create_receiver(node, credit=10, name=str(uuid.uuid4()), options=ReplyTo(self.reply_to))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.requests.close()
        self.answers.close()

    def request(self, operation, body, request_id=None, **properties):
        request = Message(
            id=request_id if request_id is not None else ulong(1),
            reply_to=self.reply_to,
            properties={"operation": operation, **properties},
            body=body,
        )
        self.requests.send(request)
        answer = self.answers.receive()
        assert answer.correlation_id == request.id
        return Answer(answer)


class Management(Requests):
    """One entity's `$management` node."""

    def __init__(self, connection, entity):
        super().__init__(connection, f"{entity}/$management")

    def peek(self, first=1, count=250):
        answer = self.request(
            "com.microsoft:peek-message", {"from-sequence-number": first, "message-count": int32(count)}
        )
        assert answer.status in (200, 204)
        return [decoded(one["message"]) for one in answer.body["messages"]] if answer.status == 200 else []

    def peek_bytes(self, **more):
        """The bytes of the first message."""
        body = {"from-sequence-number": 1, "message-count": int32(1), **more}
        answer = self.request("com.microsoft:peek-message", body)
        assert answer.status == 200
        return bytes(answer.body["messages"][0]["message"])

    def batch_delete(self, count, before):
        """Deletes at most `count` messages that were enqueued before a time in milliseconds since 1970."""
        return self.request(
            "com.microsoft:batch-delete-messages",
            {"message-count": int32(count), "enqueued-time-utc": timestamp(before)},
        )

    def purge(self, batch=4_000):
        """Deletes until nothing is found, as SDKs do; returns how many went each time."""
        counts = []
        while (answer := self.batch_delete(batch, int(time.time() * 1000) + 1)).status == 200:
            counts.append(answer.body["message-count"])
        assert (answer.status, answer.body) == (204, {})
        return counts

    def renew_lock(self, *tokens):
        return self.request("com.microsoft:renew-lock", {"lock-tokens": Array(UNDESCRIBED, Data.UUID, *tokens)})

    def receive_by_number(self, numbers, settle_mode=1, **more):
        return self.request(
            "com.microsoft:receive-by-sequence-number",
            {
                "sequence-numbers": Array(UNDESCRIBED, Data.LONG, *numbers),
                "receiver-settle-mode": uint(settle_mode),
                **more,
            },
        )

    def take_deferred(self, number, **more):
        """Receives one deferred message; returns its bytes and its lock token."""
        answer = self.receive_by_number([number], **more)
        assert answer.status == 200
        (entry,) = answer.body["messages"]
        return bytes(entry["message"]), entry.get("lock-token")

    def cancel(self, numbers):
        return self.request(
            "com.microsoft:cancel-scheduled-message", {"sequence-numbers": Array(UNDESCRIBED, Data.LONG, *numbers)}
        )

    def update_disposition(self, status, *tokens, **more):
        return self.request(
            "com.microsoft:update-disposition",
            {"disposition-status": status, "lock-tokens": Array(UNDESCRIBED, Data.UUID, *tokens), **more},
        )


def decoded(encoded):
    message = Message()
    message.decode(bytes(encoded))
    return message


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} s"
    return result


def wait_until_passed(milliseconds):
    """Waits until the wall clock is past a time that the broker has announced."""
    while (left := milliseconds / 1000 - time.time()) >= 0:
        time.sleep(left + 0.01)
