"""Locks of sessions: the session has a deadline and its messages have none.

The clock stands still, so that a lock lasts however slow the SDK is; time passes where a test lets it.
"""

import copy

import pytest

from azure.servicebus.exceptions import MessageLockLostError, SessionCannotBeLockedError

from support import Queue, connect, eventually, message, receive

# The end of the year 9999, in milliseconds since 1970.
NEVER = 253402300799999


@pytest.fixture
def sessions(own_broker):
    """An empty queue with sessions and locks of five seconds."""
    own_broker.freeze()
    with connect(own_broker.connection_string, retry_total=0) as client:
        yield Queue(client, "brief-sessions")


def send(queue, *bodies):
    queue.send(*(message(body, session_id="a") for body in bodies))


def hold(queue):
    return queue.receiver(session_id="a")


def bodies(received):
    return [b"".join(one.body).decode() for one in received]


def defer_and_receive(holder):
    (received,) = receive(holder)
    holder.defer_message(received)
    (deferred,) = holder.receive_deferred_messages(received.sequence_number)
    return deferred


def test_a_message_of_a_session_is_locked_without_an_end(sessions):
    send(sessions, "one", "two")
    with hold(sessions) as holder:
        (received,) = receive(holder)
        deferred = defer_and_receive(holder)
        for one in (received, deferred, *holder.peek_messages(2, sequence_number=1)):
            assert one.raw_amqp_message.annotations[b"x-opt-locked-until"] == NEVER
            # The SDK shows no lock of a message that came by a session.
            assert one.locked_until_utc is None
        with pytest.raises(TypeError, match="renew the session lock"):
            holder.renew_message_lock(received)
        holder.complete_message(received)
        holder.complete_message(deferred)


def test_a_deferred_message_is_settled_after_the_first_deadline_of_a_renewed_session(sessions, own_broker):
    send(sessions, "one")
    with hold(sessions) as holder:
        deferred = defer_and_receive(holder)
        own_broker.advance("PT4S")
        holder.session.renew_lock()
        own_broker.advance("PT4S")
        holder.complete_message(deferred)
        assert holder.peek_messages(1, sequence_number=1) == []


SETTLEMENTS = ["complete_message", "abandon_message", "defer_message", "dead_letter_message"]


def test_a_second_settlement_is_a_lost_lock_and_the_session_goes_on(sessions):
    send(sessions, "one", "two")
    with hold(sessions) as holder:
        # Of deferred messages this SDK asks the broker whenever they are settled.
        first = defer_and_receive(holder)
        others = [copy.copy(first) for _ in SETTLEMENTS]
        holder.complete_message(first)
        for settle, other in zip(SETTLEMENTS, others, strict=True):
            with pytest.raises(MessageLockLostError):
                getattr(holder, settle)(other)
        (second,) = receive(holder)
        assert bodies([second]) == ["two"]
        holder.complete_message(second)
        holder.session.set_state(b"still mine")
        eventually(lambda: holder.peek_messages(1, sequence_number=1) == [], "the removal of the completed message")


def test_an_idle_receiver_of_a_session_ends_half_a_second_after_its_lock(sessions, own_broker):
    with hold(sessions):
        own_broker.advance("PT5.4S")
        with pytest.raises(SessionCannotBeLockedError):
            hold(sessions).__enter__()
        own_broker.advance("PT0.1S")
        with hold(sessions) as second:
            assert second.session.session_id == "a"


def test_a_receiver_of_a_session_that_holds_a_message_ends_with_its_lock(sessions, own_broker):
    send(sessions, "one")
    with hold(sessions) as first:
        receive(first)
        own_broker.advance("PT5S")
        with hold(sessions) as second:
            assert receive(second)[0].delivery_count == 1
