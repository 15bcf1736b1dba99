"""Messages taken by iteration, of queues and of sessions; the list of sessions; receivers that prefetch."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION

from support import DEAD_LETTER, RECEIVE_AND_DELETE, SDK_VERSION, Queue, body_of, connect, eventually, message, receive


@pytest.fixture
def orders(own_broker):
    """An empty queue with locks of five minutes."""
    with connect(own_broker.connection_string) as client:
        yield Queue(client, "orders")


def numbered(count):
    return [message(f"number {number}") for number in range(count)]


def bodies(received):
    return [body_of(one).decode() for one in received]


def test_an_iterator_gets_every_message_and_ends_when_none_comes(orders):
    orders.send(*numbered(10))
    got = []
    with orders.receiver(max_wait_time=1) as receiver:
        for one in receiver:
            got.append(one)
            receiver.complete_message(one)
    assert bodies(got) == [f"number {number}" for number in range(10)]
    eventually(orders.is_empty, "the removal of the completed messages")


def test_an_iterator_gets_what_is_sent_while_it_waits(orders):
    orders.send(message("0"))
    count = 0
    with orders.receiver(receive_mode=RECEIVE_AND_DELETE) as receiver:
        for one in receiver:
            count += 1
            assert body_of(one) == b"%d" % (count - 1)
            if count == 5:
                break
            orders.send(message(str(count)))
    assert orders.is_empty()


def test_an_iterator_settles_each_message_in_its_own_way(orders):
    orders.send(message("complete"), message("dead-letter"), message("defer"))
    deferred = []
    with orders.receiver(max_wait_time=1) as receiver:
        for one in receiver:
            match body_of(one).decode():
                case "complete":
                    receiver.complete_message(one)
                case "dead-letter":
                    receiver.dead_letter_message(one, reason="as told")
                case "defer":
                    receiver.defer_message(one)
                    deferred.append(one.sequence_number)
        assert bodies(receiver.receive_deferred_messages(deferred)) == ["defer"]
    assert bodies(orders.peek(sub_queue=DEAD_LETTER)) == ["dead-letter"]


def test_prefetched_messages_come_in_order_and_are_locked(orders):
    orders.send(*numbered(30))
    with orders.receiver(prefetch_count=10) as receiver, orders.receiver() as other:
        received = receive(receiver, 5)
        assert bodies(received) == [f"number {number}" for number in range(5)]
        # What is behind the five, ten messages at least, belongs to this receiver too.
        (next_one,) = receive(other)
        assert int(bodies([next_one])[0].split()[1]) >= 10
        for one in received:
            receiver.complete_message(one)


def test_what_was_prefetched_and_not_taken_comes_again_after_its_lock(orders, own_broker):
    orders.send(*numbered(5))
    with orders.receiver(prefetch_count=5) as receiver:
        (taken,) = receive(receiver)
        receiver.complete_message(taken)
    own_broker.advance("PT5M")
    assert bodies(orders.take(4)) == [f"number {number}" for number in range(1, 5)]


@pytest.mark.parametrize("session", [NEXT_AVAILABLE_SESSION, "a"], ids=["next", "by_id"])
def test_an_iterator_gets_every_message_of_a_session_and_ends(orders, session):
    sessions = Queue(orders.client, "sessions")
    for body, owner in (("one", "a"), ("of another", "b"), ("two", "a")):
        sessions.send(message(body, session_id=owner))
    got = []
    with sessions.receiver(session_id=session, max_wait_time=1) as holder:
        for one in holder:
            got.append(one)
            holder.complete_message(one)
    assert bodies(got) == ["one", "two"]


if SDK_VERSION != "7.14.3":

    def test_sessions_with_messages_or_state_are_listed(orders):
        sessions = Queue(orders.client, "sessions")
        sessions.send(message("one", session_id="with messages"))
        before = datetime.now(timezone.utc) - timedelta(minutes=1)
        with sessions.receiver(session_id="with state") as holder:
            holder.session.set_state(b"here")
        assert sorted(orders.client.list_queue_sessions("sessions")) == ["with messages", "with state"]
        updated = orders.client.list_queue_sessions("sessions", state_updated_after=before)
        assert list(updated) == ["with state"]
