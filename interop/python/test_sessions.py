"""Sessions: one holder at a time, in order, with a state of its own."""

import time
import uuid

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusSubQueue
from azure.servicebus.exceptions import (
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from support import PREFIX, body_of, connect, message, receive, wait_until_passed

NAME = f"{PREFIX}-sessions"


@pytest.fixture
def session():
    """An id that no other test or run has used."""
    return str(uuid.uuid4())


def hold(client, session, name=NAME, **options):
    return client.get_queue_receiver(name, session_id=session, **options)


def send(client, session, *bodies, name=NAME):
    with client.get_queue_sender(name) as sender:
        for body in bodies:
            sender.send_messages(message(body, session_id=session))


def test_a_session_is_accepted_by_id_and_comes_in_order_to_its_holder_alone(client, session):
    other = str(uuid.uuid4())
    send(client, session, "one")
    send(client, other, "of another")
    send(client, session, "two", "three")
    with hold(client, session) as receiver:
        assert receiver.session.session_id == session
        received = receive(receiver, 3)
        assert [body_of(one) for one in received] == [b"one", b"two", b"three"]
        assert {one.session_id for one in received} == {session}
        # With retries it would wait until the lock has run out.
        with connect(retry_total=0) as impatient, pytest.raises(SessionCannotBeLockedError):
            hold(impatient, session).__enter__()
        for one in received:
            receiver.complete_message(one)
    with hold(client, other) as receiver:
        receiver.complete_message(receive(receiver)[0])


def test_ids_that_differ_in_letter_case_are_one_session(client, session):
    ids = [f"Order-{session}", f"ORDER-{session}", f"order-{session}"]
    for one in ids:
        send(client, one, one)
    asked = f"oRDER-{session}"
    with hold(client, asked) as receiver:
        assert receiver.session.session_id == asked
        received = receive(receiver, 3)
        assert [one.session_id for one in received] == ids
        receiver.session.set_state(b"known")
        with connect(retry_total=0) as impatient, pytest.raises(SessionCannotBeLockedError):
            hold(impatient, ids[0]).__enter__()
        for one in received:
            receiver.complete_message(one)
    with hold(client, ids[1]) as receiver:
        assert receiver.session.get_state() == b"known"
        receiver.session.set_state(None)


def test_the_next_session_is_the_one_whose_first_message_is_oldest(own_broker):
    with connect(own_broker.connection_string, retry_total=0) as client:
        send(client, "first", "one", name="sessions")
        send(client, "second", "two", name="sessions")
        for expected in ("first", "second"):
            with hold(client, NEXT_AVAILABLE_SESSION, name="sessions") as receiver:
                assert receiver.session.session_id == expected
                receiver.complete_message(receive(receiver)[0])
        with pytest.raises(OperationTimeoutError):
            hold(client, NEXT_AVAILABLE_SESSION, name="sessions", max_wait_time=1).__enter__()


def test_a_state_is_binary_and_survives_its_holder(client, session):
    state = bytes(range(256))
    with hold(client, session) as receiver:
        assert receiver.session.get_state() is None
        receiver.session.set_state(state)
        assert receiver.session.get_state() == state
    with hold(client, session) as receiver:
        assert receiver.session.get_state() == state
        receiver.session.set_state(None)
        assert receiver.session.get_state() is None
        receiver.session.set_state(state)
        receiver.session.set_state(b"")
        assert receiver.session.get_state() is None


def test_a_renewed_session_is_held_longer_than_its_lock(client, session):
    send(client, session, "one")
    with hold(client, session) as receiver:
        received = receive(receiver)[0]
        first_end = receiver.session.locked_until_utc
        time.sleep(2)
        assert receiver.session.renew_lock() > first_end
        wait_until_passed(first_end)
        receiver.complete_message(received)


def test_a_session_that_is_not_renewed_is_lost_and_its_messages_come_again(client, session):
    send(client, session, "one")
    with hold(client, session) as receiver:
        received = receive(receiver)[0]
        wait_until_passed(receiver.session.locked_until_utc)
        with pytest.raises(SessionLockLostError):
            receiver.complete_message(received)
    with hold(client, session) as receiver:
        received = receive(receiver)[0]
        assert received.delivery_count == 1
        receiver.complete_message(received)


def test_an_abandoned_message_comes_before_those_behind_it(client, session):
    send(client, session, "one", "two")
    with hold(client, session) as receiver:
        receiver.abandon_message(receive(receiver)[0])
        received = receive(receiver, 2)
        assert [body_of(one) for one in received] == [b"one", b"two"]
        assert received[0].delivery_count == 1
        for one in received:
            receiver.complete_message(one)


def test_deferred_and_peeked_messages_are_those_of_the_session(client, session):
    other = str(uuid.uuid4())
    send(client, session, "one")
    send(client, other, "of another")
    with hold(client, session) as receiver:
        received = receive(receiver)[0]
        receiver.defer_message(received)
        assert [body_of(one) for one in receiver.peek_messages(10, sequence_number=1)] == [b"one"]
        deferred = receiver.receive_deferred_messages(received.sequence_number)
        receiver.complete_message(deferred[0])
    with hold(client, other) as receiver:
        receiver.complete_message(receive(receiver)[0])


def test_dead_letters_are_received_without_a_session(client, session):
    send(client, session, "one")
    with hold(client, session) as receiver:
        receiver.dead_letter_message(receive(receiver)[0], reason="why")
    options = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER}
    with client.get_queue_receiver(NAME, **options) as receiver:
        found = []
        while session not in [one.session_id for one in found]:
            found = receive(receiver)
            receiver.complete_message(found[0])
        assert found[0].dead_letter_reason == "why"


def test_a_message_and_a_receiver_without_a_session_are_refused(client):
    with client.get_queue_sender(NAME) as sender:
        with pytest.raises(ServiceBusError, match="SessionId"):
            sender.send_messages(message("one"))
    with pytest.raises(ServiceBusError, match="non-sessionful"):
        client.get_queue_receiver(NAME).__enter__()
