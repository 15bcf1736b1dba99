"""`AutoLockRenewer`: locks of messages and of sessions, kept and lost.

The clock stands still, so that a lock lasts however slow the SDK is; time passes where a test lets it.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from azure.servicebus import AutoLockRenewer
from azure.servicebus.exceptions import AutoLockRenewFailed

from support import Queue, connect, eventually, message, receive


@pytest.fixture
def client(own_broker):
    own_broker.freeze()
    with connect(own_broker.connection_string) as client:
        yield client


@pytest.fixture
def brief(client):
    """An empty queue with locks of five seconds."""
    return Queue(client, "brief")


def until_renewed(renewable, end):
    eventually(lambda: renewable.locked_until_utc > end, "the renewal")


def test_the_auto_lock_renewer_keeps_the_lock_of_a_message(own_broker, brief):
    brief.send(message())
    with brief.receiver() as receiver, AutoLockRenewer() as renewer:
        (held,) = receive(receiver)
        end = held.locked_until_utc
        own_broker.advance("PT4S")
        renewer.register(receiver, held, max_lock_renewal_duration=60)
        until_renewed(held, end)
        own_broker.advance("PT4S")
        receiver.complete_message(held)
        eventually(brief.is_empty, "the removal of the completed message")


def receive_many(queue, receiver, count):
    queue.send([message(str(number)) for number in range(count)])
    return receive(receiver, count)


def complete_all(queue, receiver, held):
    for one in held:
        receiver.complete_message(one)
    eventually(queue.is_empty, "the removal of the completed messages")


# Threads that renew at the same time give their requests the same delivery id and tag.


def test_the_auto_lock_renewer_keeps_the_locks_of_several_messages(own_broker, brief):
    with AutoLockRenewer(max_workers=4) as renewer, brief.receiver() as receiver:
        held = receive_many(brief, receiver, 10)
        ends = [one.locked_until_utc for one in held]
        own_broker.advance("PT4S")
        for one in held:
            renewer.register(receiver, one, max_lock_renewal_duration=60)
        for one, end in zip(held, ends, strict=True):
            until_renewed(one, end)
        own_broker.advance("PT4S")
        complete_all(brief, receiver, held)


def test_threads_renew_many_locks_at_the_same_time(own_broker, brief):
    with brief.receiver() as receiver, ThreadPoolExecutor(max_workers=5) as pool:
        held = receive_many(brief, receiver, 20)
        for _ in range(2):
            own_broker.advance("PT4S")
            assert len(list(pool.map(receiver.renew_message_lock, held))) == 20
        complete_all(brief, receiver, held)


def test_the_auto_lock_renewer_keeps_the_lock_of_a_session(own_broker, client):
    sessions = Queue(client, "brief-sessions")
    sessions.send(message(session_id="a"))
    with AutoLockRenewer() as renewer, sessions.receiver(session_id="a", auto_lock_renewer=renewer) as holder:
        (held,) = receive(holder)
        end = holder.session.locked_until_utc
        own_broker.advance("PT4S")
        until_renewed(holder.session, end)
        own_broker.advance("PT4S")
        holder.complete_message(held)
        holder.session.set_state(b"still mine")


def test_an_iterator_with_an_auto_lock_renewer_keeps_each_lock(own_broker, brief):
    brief.send(message("one"), message("two"))
    count = 0
    with AutoLockRenewer(max_lock_renewal_duration=60) as renewer:
        with brief.receiver(auto_lock_renewer=renewer) as receiver:
            for held in receiver:
                end = held.locked_until_utc
                own_broker.advance("PT4S")
                until_renewed(held, end)
                own_broker.advance("PT4S")
                receiver.complete_message(held)
                count += 1
                if count == 2:
                    break
    eventually(brief.is_empty, "the removal of the completed messages")


def test_the_auto_lock_renewer_tells_that_a_lock_was_lost(own_broker, brief):
    brief.send(message())
    lost = Future()
    with brief.receiver() as receiver, AutoLockRenewer() as renewer:
        (held,) = receive(receiver)
        own_broker.advance("PT5S")
        renewer.register(receiver, held, on_lock_renew_failure=lambda *told: lost.set_result(told))
        renewable, error = lost.result()
        assert renewable is held
        assert isinstance(error, AutoLockRenewFailed)
        (again,) = receive(receiver)
        assert again.delivery_count == 1
        receiver.complete_message(again)
