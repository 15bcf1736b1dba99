"""Bad input: requests, sessions, tokens and transactions that make no sense get the contract's error and change nothing.

The queue of the first part holds an active, a locked, a deferred and a scheduled message. Each request is made on the
same links, and each must leave all four as they are.
"""

import base64
import hashlib
import hmac
import time
import urllib.parse
import uuid

import pytest

from proton import UNDESCRIBED, Array, Data, Delivery, Described, Message, int32, symbol, timestamp, uint, ulong
from proton.reactor import Filter
from proton.utils import LinkDetached

from support import KEY, KEY_NAME, MESSAGE_STATE, PREFIX, SEQUENCE_NUMBER, PeekLock, Queue, Requests, connect
from support import message
from test_transaction import Controller

ARGUMENT = (400, "com.microsoft:argument-error")
OUT_OF_RANGE = (400, "com.microsoft:argument-out-of-range")
NOT_ALLOWED = (400, "amqp:not-allowed")
NOT_FOUND = (404, "com.microsoft:message-not-found")
LOCK_LOST = (410, "com.microsoft:message-lock-lost")
SESSION_LOST = (410, "com.microsoft:session-lock-lost")
UNKNOWN_NUMBER = 2**40
LONG_ID = "x" * 129
SESSION_FILTER = "com.microsoft:session-filter"


def longs(*numbers):
    return Array(UNDESCRIBED, Data.LONG, *numbers)


def uuids(*tokens):
    return Array(UNDESCRIBED, Data.UUID, *tokens)


def strings(*texts):
    return Array(UNDESCRIBED, Data.STRING, *texts)


def later(hours=1):
    return timestamp(int((time.time() + hours * 3600) * 1000))


def scheduled(time):
    """A message to schedule, in the form of a request."""
    made = message("scheduled")
    made.annotations = {symbol("x-opt-scheduled-enqueue-time"): time}
    return {"message": made.encode(), "message-id": made.id}


class Stock:
    """A queue with a message in each state, and the links to ask for them."""

    def __init__(self, connection):
        self.queue = Queue(connection, f"{PREFIX}-bad")
        self.queue.clear()
        self.receiver = self.queue.receiver()
        self.queue.send(message("deferred"), message("locked"), message("active"))
        deferred = self.receiver.receive()
        self.receiver.defer(deferred)
        self.deferred = deferred.number
        self.locked = self.receiver.receive()
        self.management = self.queue.management()
        answer = self.management.request("com.microsoft:schedule-message", {"messages": [scheduled(later())]})
        assert answer.status == 200
        (self.scheduled,) = answer.body["sequence-numbers"].elements

    def state(self):
        """What is in the queue, while the lock that is held is renewed."""
        assert self.management.renew_lock(self.locked.token).status == 200
        peeked = self.management.peek()
        return [
            (one.body, one.delivery_count, one.annotations[SEQUENCE_NUMBER], one.annotations[MESSAGE_STATE])
            for one in peeked
        ]

    def close(self):
        # Its lock still holds, whatever was asked meanwhile.
        self.receiver.complete(self.locked)
        assert self.management.cancel([self.scheduled]).status == 200
        assert self.management.receive_by_number([self.deferred], settle_mode=0).status == 200
        assert [one.body for one in self.queue.take()] == ["active"]
        assert self.management.peek() == []


@pytest.fixture(scope="module")
def stock():
    connection = connect()
    stock = Stock(connection)
    assert len(stock.state()) == 4
    yield stock
    stock.close()
    connection.close()


PEEK = "com.microsoft:peek-message"
RENEW = "com.microsoft:renew-lock"
UPDATE = "com.microsoft:update-disposition"
BY_NUMBER = "com.microsoft:receive-by-sequence-number"
SCHEDULE = "com.microsoft:schedule-message"
CANCEL = "com.microsoft:cancel-scheduled-message"

# What a request says, with the stock's own tokens and numbers where it should be half right.
BAD_REQUESTS = {
    "peek from a text": (PEEK, lambda _: {"from-sequence-number": "one", "message-count": int32(1)}, ARGUMENT),
    "peek a count of a text": (PEEK, lambda _: {"from-sequence-number": 1, "message-count": "all"}, ARGUMENT),
    "peek a negative count": (PEEK, lambda _: {"from-sequence-number": 1, "message-count": int32(-1)}, ARGUMENT),
    "peek a count of zero": (PEEK, lambda _: {"from-sequence-number": 1, "message-count": int32(0)}, ARGUMENT),
    "peek with a list": (PEEK, lambda _: [1, 2], ARGUMENT),
    "peek with a text": (PEEK, lambda _: "all", ARGUMENT),
    "renew no token": (RENEW, lambda _: {}, ARGUMENT),
    "renew a text": (RENEW, lambda _: {"lock-tokens": "all"}, ARGUMENT),
    "renew texts": (RENEW, lambda _: {"lock-tokens": strings("a", "b")}, ARGUMENT),
    "renew none": (RENEW, lambda _: {"lock-tokens": uuids()}, ARGUMENT),
    "renew an unknown token": (RENEW, lambda _: {"lock-tokens": uuids(uuid.uuid4())}, LOCK_LOST),
    "settle as what is not": (
        UPDATE,
        lambda stock: {"disposition-status": "forgotten", "lock-tokens": uuids(stock.locked.token)},
        ARGUMENT,
    ),
    "settle as a number": (
        UPDATE,
        lambda stock: {"disposition-status": int32(1), "lock-tokens": uuids(stock.locked.token)},
        ARGUMENT,
    ),
    "settle without a status": (UPDATE, lambda stock: {"lock-tokens": uuids(stock.locked.token)}, ARGUMENT),
    "settle without a token": (UPDATE, lambda _: {"disposition-status": "completed"}, ARGUMENT),
    "settle numbers": (UPDATE, lambda _: {"disposition-status": "completed", "lock-tokens": longs(1)}, ARGUMENT),
    "settle a known and an unknown token": (
        UPDATE,
        lambda stock: {"disposition-status": "completed", "lock-tokens": uuids(stock.locked.token, uuid.uuid4())},
        LOCK_LOST,
    ),
    "dead-letter for a long reason": (
        UPDATE,
        lambda stock: {
            "disposition-status": "suspended",
            "lock-tokens": uuids(stock.locked.token),
            "deadletter-reason": "x" * 4097,
        },
        OUT_OF_RANGE,
    ),
    "dead-letter for a number": (
        UPDATE,
        lambda stock: {
            "disposition-status": "suspended",
            "lock-tokens": uuids(stock.locked.token),
            "deadletter-reason": int32(1),
        },
        ARGUMENT,
    ),
    "abandon with properties that are a list": (
        UPDATE,
        lambda stock: {
            "disposition-status": "abandoned",
            "lock-tokens": uuids(stock.locked.token),
            "properties-to-modify": [1],
        },
        ARGUMENT,
    ),
    "receive texts by number": (
        BY_NUMBER,
        lambda _: {"sequence-numbers": strings("one"), "receiver-settle-mode": uint(1)},
        ARGUMENT,
    ),
    "receive a negative number": (
        BY_NUMBER,
        lambda _: {"sequence-numbers": longs(-1), "receiver-settle-mode": uint(1)},
        NOT_FOUND,
    ),
    "receive no numbers": (
        BY_NUMBER,
        lambda _: {"sequence-numbers": longs(), "receiver-settle-mode": uint(1)},
        ARGUMENT,
    ),
    "receive by number in a mode that is not": (
        BY_NUMBER,
        lambda stock: {"sequence-numbers": longs(stock.deferred), "receiver-settle-mode": uint(2)},
        ARGUMENT,
    ),
    "receive a deferred and an unknown number": (
        BY_NUMBER,
        lambda stock: {"sequence-numbers": longs(stock.deferred, UNKNOWN_NUMBER), "receiver-settle-mode": uint(0)},
        NOT_FOUND,
    ),
    "receive a scheduled number": (
        BY_NUMBER,
        lambda stock: {"sequence-numbers": longs(stock.scheduled), "receiver-settle-mode": uint(0)},
        NOT_FOUND,
    ),
    "schedule nothing": (SCHEDULE, lambda _: {"messages": []}, ARGUMENT),
    "schedule a text": (SCHEDULE, lambda _: {"messages": "one"}, ARGUMENT),
    "schedule a text as a message": (SCHEDULE, lambda _: {"messages": [{"message": "one"}]}, ARGUMENT),
    "schedule one and one without a message": (
        SCHEDULE,
        lambda _: {"messages": [scheduled(later()), {"message-id": "a"}]},
        ARGUMENT,
    ),
    "schedule bytes that are no message": (
        SCHEDULE,
        lambda _: {"messages": [scheduled(later()), {"message": b"\x07"}]},
        (400, "amqp:decode-error"),
    ),
    "schedule for a text": (SCHEDULE, lambda _: {"messages": [scheduled("tomorrow")]}, ARGUMENT),
    "cancel a text": (CANCEL, lambda _: {"sequence-numbers": "all"}, ARGUMENT),
    "cancel a negative number": (CANCEL, lambda _: {"sequence-numbers": longs(-1)}, NOT_FOUND),
    "cancel a scheduled and an unknown number": (
        CANCEL,
        lambda stock: {"sequence-numbers": longs(stock.scheduled, UNKNOWN_NUMBER)},
        NOT_FOUND,
    ),
    "cancel a deferred number": (CANCEL, lambda stock: {"sequence-numbers": longs(stock.deferred)}, NOT_FOUND),
    "renew a session where there are none": (
        "com.microsoft:renew-session-lock",
        lambda _: {"session-id": "a"},
        NOT_ALLOWED,
    ),
    "an operation that is not": ("com.microsoft:make-coffee", lambda _: {}, (501, "amqp:not-implemented")),
    "an operation that is a number": (int32(7), lambda _: {}, (501, "amqp:not-implemented")),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_gets_its_error_and_changes_nothing(stock, name):
    operation, body, expected = BAD_REQUESTS[name]
    before = stock.state()
    answer = stock.management.request(operation, body(stock))
    assert (answer.status, answer.condition) == expected
    assert answer.body == {}
    assert stock.state() == before


@pytest.mark.parametrize("time", ["tomorrow", True, b"1"], ids=repr)
def test_a_message_that_is_sent_for_a_time_that_is_none_is_rejected(stock, time):
    before = stock.state()
    sent = message()
    sent.annotations = {symbol("x-opt-scheduled-enqueue-time"): time}
    delivery = stock.queue.sender().link.send(sent)
    stock.queue.connection.wait(lambda: delivery.remote_state, msg="sending")
    assert delivery.remote_state == Delivery.REJECTED
    assert delivery.remote.condition.name == "com.microsoft:argument-error"
    assert stock.state() == before


class SessionFilter(Filter):
    """Wants a session, and the broker's answers to settlements."""

    def __init__(self, wanted):
        super().__init__({symbol(SESSION_FILTER): Described(ulong(0x000000137000000C), wanted)})

    def apply(self, receiver):
        super().apply(receiver)
        PeekLock().apply(receiver)


def hold(connection, session):
    return connection.create_receiver(f"{PREFIX}-sessions", name=str(uuid.uuid4()), options=SessionFilter(session))


@pytest.fixture
def session(connection):
    """A session that is held, with a state; its id."""
    session = str(uuid.uuid4())
    link = hold(connection, session)
    with Requests(connection, f"{PREFIX}-sessions/$management") as node:
        body = {"session-id": session, "session-state": b"kept"}
        assert node.request("com.microsoft:set-session-state", body).status == 200
        yield session
        answer = node.request("com.microsoft:get-session-state", {"session-id": session})
        assert answer.body == {"session-state": b"kept"}
        assert node.request("com.microsoft:renew-session-lock", {"session-id": session}).status == 200
    link.close()


SESSION_OPERATIONS = ["renew-session-lock", "get-session-state", "set-session-state"]


@pytest.mark.parametrize("operation", SESSION_OPERATIONS)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ARGUMENT),
        ({"session-id": int32(1)}, ARGUMENT),
        ({"session-id": LONG_ID}, OUT_OF_RANGE),
        ({"session-id": "of nobody"}, SESSION_LOST),
    ],
    ids=["no_id", "a_number", "129_characters", "not_held"],
)
def test_a_bad_request_for_a_session_gets_its_error(connection, session, operation, body, expected):
    with Requests(connection, f"{PREFIX}-sessions/$management") as node:
        answer = node.request(f"com.microsoft:{operation}", body)
        assert (answer.status, answer.condition) == expected


@pytest.mark.parametrize("state", ["text", int32(3), [b"a"]], ids=repr)
def test_a_state_that_is_not_binary_is_refused_and_the_old_one_stays(connection, session, state):
    with Requests(connection, f"{PREFIX}-sessions/$management") as node:
        body = {"session-id": session, "session-state": state}
        answer = node.request("com.microsoft:set-session-state", body)
        assert (answer.status, answer.condition) == ARGUMENT


@pytest.mark.parametrize(
    "body",
    [{"skip": int32(-1), "top": int32(10)}, {"skip": int32(0), "top": int32(-1)}, {"last-updated-time": "yesterday"}],
    ids=["skip", "top", "time"],
)
def test_a_bad_request_for_the_list_of_sessions_is_refused(connection, session, body):
    with Requests(connection, f"{PREFIX}-sessions/$management") as node:
        answer = node.request("com.microsoft:get-message-sessions", body)
        assert (answer.status, answer.condition) == ARGUMENT


@pytest.mark.parametrize(
    ("wanted", "condition"),
    [(LONG_ID, "com.microsoft:argument-out-of-range"), (int32(1), "com.microsoft:argument-error")],
    ids=["129_characters", "a_number"],
)
def test_a_receiver_for_a_bad_session_is_refused(connection, session, wanted, condition):
    with pytest.raises(LinkDetached) as raised:
        hold(connection, wanted)
    assert raised.value.condition == condition


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({}, "amqp:not-allowed"),
        ({"group_id": LONG_ID}, "com.microsoft:argument-out-of-range"),
        ({"group_id": "a", "reply_to_group_id": LONG_ID}, "com.microsoft:argument-out-of-range"),
        ({"group_id": "a", "id": LONG_ID}, "com.microsoft:argument-out-of-range"),
    ],
    ids=["none", "129_characters", "reply_to_129_characters", "message_id_129_characters"],
)
def test_a_message_with_a_bad_session_is_rejected(connection, session, fields, condition):
    queue = Queue(connection, f"{PREFIX}-sessions")
    before = len(queue.peek())
    delivery = queue.sender().link.send(message(**fields))
    connection.wait(lambda: delivery.remote_state, msg="sending")
    assert delivery.remote_state == Delivery.REJECTED
    assert delivery.remote.condition.name == condition
    assert len(queue.peek()) == before


def shared_access_signature(resource, key=KEY):
    audience = urllib.parse.quote(resource, safe="")
    expiry = int(time.time()) + 3600
    digest = hmac.new(key.encode(), f"{audience}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote(base64.b64encode(digest), safe="")
    return f"SharedAccessSignature sr={audience}&sig={signature}&se={expiry}&skn={KEY_NAME}"


def put_token(connection, audience, token):
    with Requests(connection, "$cbs") as node:
        answer = node.request("put-token", token, type="servicebus.windows.net:sastoken", name=audience)
        return answer.status


@pytest.fixture
def anonymous():
    connection = connect(user=None, password=None, mechanisms="ANONYMOUS")
    yield connection
    connection.close()


def audience_of(queue):
    return f"amqp://localhost/{queue}"


def test_a_token_for_another_queue_gives_no_right_and_takes_none(anonymous, plain, compete):
    token = shared_access_signature(audience_of(plain.name))
    assert put_token(anonymous, audience_of(plain.name), token) == 202
    assert put_token(anonymous, audience_of(compete.name), token) == 401
    with pytest.raises(LinkDetached) as raised:
        Queue(anonymous, compete.name).sender()
    assert raised.value.condition == "amqp:unauthorized-access"
    Queue(anonymous, plain.name).send(message())
    assert compete.peek() == []
    assert len(plain.take()) == 1


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (lambda audience: shared_access_signature(audience, key="wrong"), 401),
        (lambda audience: "SharedAccessSignature sr=what", 400),
        (lambda audience: "", 400),
        (lambda audience: int32(1), 400),
    ],
    ids=["wrong_key", "half_a_token", "empty", "a_number"],
)
def test_a_bad_token_gives_no_right(anonymous, plain, token, status):
    audience = audience_of(plain.name)
    assert put_token(anonymous, audience, token(audience)) == status
    with pytest.raises(LinkDetached) as raised:
        Queue(anonymous, plain.name).receiver()
    assert raised.value.condition == "amqp:unauthorized-access"


def test_a_message_whose_destination_is_missing_goes_to_the_transfer_dead_letter_queue(connection):
    source = Queue(connection, f"{PREFIX}-nowhere")
    sent = message()
    source.send(sent)
    (dead,) = Queue(connection, f"{source.name}/$Transfer/$DeadLetterQueue").take()
    assert dead.id == sent.id
    assert dead.properties["DeadLetterReason"] == "amqp:not-found"
    assert dead.properties["DeadLetterErrorDescription"] == "The transfer destination entity does not exist."
    assert source.peek() == []


@pytest.mark.parametrize("unknown", [b"0123456789abcdef", b"", b"x" * 1024], ids=["16_bytes", "none", "1024_bytes"])
def test_within_a_transaction_that_never_was_nothing_is_settled(connection, plain, unknown):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    transaction = Controller(connection).declare()
    known, transaction.id = transaction.id, unknown
    transaction.accept(received.delivery)
    connection.wait(lambda: received.delivery.remote_state, msg="accepting")
    assert received.delivery.remote_state == Delivery.REJECTED
    assert received.delivery.remote.condition.name == "amqp:transaction:unknown-id"
    assert len(plain.peek()) == 1
    with plain.management() as management:
        assert management.update_disposition("completed", received.token).status == 200
    transaction.id = known
    assert plain.peek() == []
