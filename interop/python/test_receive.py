"""Receiving in both modes, browsing, and several receivers on one queue."""

from concurrent.futures import ThreadPoolExecutor

from support import RECEIVE_AND_DELETE, connect, eventually, message, receive


def test_peek_lock_hides_a_message_until_it_is_completed(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver() as holder, plain.receiver() as other:
        (received,) = receive(holder)
        assert received.message_id == sent.message_id
        assert received.lock_token is not None
        assert received.locked_until_utc is not None
        assert other.receive_messages(max_message_count=1, max_wait_time=1) == []
        holder.complete_message(received)
        eventually(plain.is_empty, "the removal of the completed message")


def test_receive_and_delete_removes_at_delivery(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver(receive_mode=RECEIVE_AND_DELETE) as receiver:
        (received,) = receive(receiver)
        assert received.message_id == sent.message_id
        assert received.lock_token is None
    assert plain.is_empty()


def test_peek_shows_messages_in_order_and_takes_nothing(plain):
    sent = [message(f"number {number}") for number in range(5)]
    plain.send(*sent)
    with plain.receiver() as receiver:
        first = receiver.peek_messages(max_message_count=3, sequence_number=1)
        rest = receiver.peek_messages(max_message_count=10)
        assert [one.message_id for one in first + rest] == [one.message_id for one in sent]
        after = receiver.peek_messages(max_message_count=1, sequence_number=first[2].sequence_number)
        assert after[0].message_id == sent[2].message_id
        assert all(one.lock_token is None and one.delivery_count == 0 for one in first + rest)
    received = plain.take(5)
    assert [one.message_id for one in received] == [one.message_id for one in sent]
    assert all(one.delivery_count == 0 for one in received)


def test_peek_shows_a_message_that_is_locked(plain):
    sent = message()
    plain.send(sent)
    with plain.receiver() as receiver:
        (received,) = receive(receiver)
        assert [one.message_id for one in plain.peek()] == [sent.message_id]
        receiver.complete_message(received)


def test_peek_of_an_empty_queue_is_empty(plain):
    assert plain.peek() == []


def test_competing_receivers_get_disjoint_messages(compete):
    sent = [message() for _ in range(100)]
    compete.send(*sent)
    with ThreadPoolExecutor(max_workers=4) as pool:
        shares = list(pool.map(complete_until_empty, [compete.name] * 4))
    received = [message_id for share in shares for message_id in share]
    assert sorted(received) == sorted(one.message_id for one in sent)
    eventually(compete.is_empty, "the removal of all messages")


def complete_until_empty(name):
    """Works like a consumer until nothing comes for a second; a receiver belongs to one thread."""
    done = []
    with connect() as client, client.get_queue_receiver(name) as receiver:
        while batch := receiver.receive_messages(max_message_count=5, max_wait_time=1):
            for one in batch:
                receiver.complete_message(one)
                done.append(one.message_id)
    return done
