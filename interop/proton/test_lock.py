"""Locks: running out, renewal, and settlement by token alone."""

import uuid

from proton import Delivery

from support import Queue, connect, message, wait_until_passed

LOCK_LOST = "com.microsoft:message-lock-lost"


def test_settling_after_the_lock_ran_out_is_lock_lost(shortlock):
    sent = message()
    shortlock.send(sent)
    late, next_one = shortlock.receiver(), shortlock.receiver()
    received = late.receive()
    wait_until_passed(received.locked_until)
    again = next_one.receive()
    assert again.message.id == sent.id
    assert again.message.delivery_count == 1
    assert late.settle(received, Delivery.ACCEPTED) == (Delivery.REJECTED, LOCK_LOST)
    next_one.complete(again)
    assert shortlock.peek() == []


def test_a_late_abandon_and_dead_letter_are_lock_lost_and_change_nothing(shortlock):
    shortlock.send(message(), message())
    late = shortlock.receiver()
    first, second = late.receive(), late.receive()
    wait_until_passed(second.locked_until)
    assert late.settle(first, Delivery.MODIFIED) == (Delivery.REJECTED, LOCK_LOST)
    assert late.settle(second, Delivery.REJECTED) == (Delivery.REJECTED, LOCK_LOST)
    assert [one.delivery_count for one in shortlock.take(2)] == [1, 1]
    assert shortlock.dead_letter.peek() == []


def test_a_renewed_lock_outlives_the_first_one(shortlock):
    shortlock.send(message())
    holder, other = shortlock.receiver(), shortlock.receiver()
    received = holder.receive()
    renewed = received.locked_until
    with shortlock.management() as management:
        while renewed < received.locked_until + 2000:
            assert other.receive(patience=0.5) is None
            answer = management.renew_lock(received.token)
            assert answer.status == 200
            assert answer.body["expirations"].elements[0] >= renewed
            renewed = answer.body["expirations"].elements[0]
    wait_until_passed(received.locked_until)
    assert other.receive(patience=0.5) is None
    holder.complete(received)
    assert shortlock.peek() == []


def test_renewing_a_lock_that_ran_out_is_lock_lost(shortlock):
    shortlock.send(message())
    received = shortlock.receiver().receive()
    wait_until_passed(received.locked_until)
    with shortlock.management() as management:
        answer = management.renew_lock(received.token)
        assert (answer.status, answer.condition) == (410, LOCK_LOST)


def test_one_bad_token_renews_nothing(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    with plain.management() as management:
        answer = management.renew_lock(received.token, uuid.uuid4())
        assert (answer.status, answer.condition) == (410, LOCK_LOST)
    receiver.complete(received)


def test_a_lock_outlives_its_connection_and_settles_by_its_token(plain):
    plain.send(message())
    holder = connect()
    received = Queue(holder, plain.name).receiver().receive()
    token = received.token
    holder.close()
    with plain.management() as management:
        assert len(management.peek()) == 1
        assert management.renew_lock(token).status == 200
        assert management.update_disposition("completed", token).status == 200
        assert management.peek() == []
        again = management.update_disposition("completed", token)
        assert (again.status, again.condition) == (410, LOCK_LOST)
