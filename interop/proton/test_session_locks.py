"""Locks of sessions: the session has a deadline and its messages have none; tokens that nobody holds; idle receivers.

The clock stands still; time passes where a test lets it.
"""

import uuid

import pytest

from proton.utils import LinkDetached

from support import LOCKED_UNTIL, UNLOCKED, WITH_SESSION, Queue, Receiver, decoded, message
from test_bad_input import LOCK_LOST, SESSION_LOST, SessionFilter

NAME = "brief-sessions"


@pytest.fixture
def sessions(own_connection):
    """An empty queue with sessions and locks of five seconds."""
    return Queue(own_connection, NAME)


def hold(connection, session="a"):
    return Receiver(connection, connection.create_receiver(NAME, name=str(uuid.uuid4()), options=SessionFilter(session)))


def send(queue, *bodies, session="a"):
    queue.send(*(message(body, group_id=session) for body in bodies))


def test_a_message_of_a_session_is_locked_without_an_end(sessions, own_connection):
    send(sessions, "one", "two")
    send(sessions, "of another", session="b")
    holder = hold(own_connection)
    received, deferred = holder.receive(), holder.receive()
    assert received.locked_until == WITH_SESSION
    holder.defer(deferred)
    with sessions.management() as management:
        encoded, token = management.take_deferred(deferred.number, **{"session-id": "a"})
        assert decoded(encoded).annotations[LOCKED_UNTIL] == WITH_SESSION
        shown = [one.annotations[LOCKED_UNTIL] for one in management.peek()]
        assert shown == [WITH_SESSION, WITH_SESSION, UNLOCKED]
        completed = management.update_disposition("completed", token, **{"session-id": "a"})
        assert completed.status == 200
    holder.complete(received)


def test_a_token_that_nobody_holds_is_a_lost_message_lock_to_the_holder_of_the_session(sessions, own_connection):
    send(sessions, "one", "two")
    holder = hold(own_connection)
    received = holder.receive()
    token = received.token
    holder.complete(received)
    with sessions.management() as management:
        for unknown in (token, uuid.uuid4()):
            for status in ("completed", "abandoned", "defered", "suspended"):
                answer = management.update_disposition(status, unknown, **{"session-id": "a"})
                assert (answer.status, answer.condition) == LOCK_LOST, status
        # Nobody holds this session, and a request that names none is not its holder's.
        for more in ({"session-id": "b"}, {}):
            answer = management.update_disposition("completed", token, **more)
            assert (answer.status, answer.condition) == SESSION_LOST, more
    second = holder.receive()
    assert second.message.body == "two"
    holder.complete(second)
    assert sessions.peek() == []


def test_an_idle_receiver_of_a_session_ends_half_a_second_after_its_lock(sessions, own_broker, own_connection):
    holder = hold(own_connection)
    own_broker.advance("PT5.4S")
    with pytest.raises(LinkDetached) as refused:
        hold(own_connection)
    assert refused.value.condition == "com.microsoft:session-cannot-be-locked"
    assert holder.receive(patience=0.1) is None
    own_broker.advance("PT0.1S")
    with pytest.raises(LinkDetached) as ended:
        holder.receive()
    assert ended.value.condition == "com.microsoft:session-lock-lost"
    hold(own_connection).close()


def test_a_receiver_of_a_session_that_holds_a_message_ends_with_its_lock(sessions, own_broker, own_connection):
    send(sessions, "one")
    holder = hold(own_connection)
    holder.receive()
    own_broker.advance("PT5S")
    with pytest.raises(LinkDetached) as ended:
        holder.receive()
    assert ended.value.condition == "com.microsoft:session-lock-lost"
    again = hold(own_connection).receive()
    assert again.message.delivery_count == 1


def test_the_lock_of_a_session_is_over_at_its_deadline_for_an_idle_receiver_too(sessions, own_broker, own_connection):
    holder = hold(own_connection)
    with sessions.management() as management:
        renew = lambda: management.request("com.microsoft:renew-session-lock", {"session-id": "a"})
        own_broker.advance("PT4S")
        assert renew().status == 200
        own_broker.advance("PT5S")
        answer = renew()
        assert (answer.status, answer.condition) == SESSION_LOST
    with pytest.raises(LinkDetached):
        own_broker.advance("PT1S")
        holder.receive()
