"""Duplicate detection: a second message with an id is accepted and dropped."""

from support import message


def test_a_second_message_with_an_id_is_accepted_and_dropped(once):
    first, other = message("first"), message("other")
    once.send(first)
    once.send(message("again", message_id=first.message_id))
    once.send(other)
    received = once.take(2)
    assert [one.message_id for one in received] == [first.message_id, other.message_id]
    assert [b"".join(one.body) for one in received] == [b"first", b"other"]
    # The first is gone, and its id is still known.
    once.send(message("once more", message_id=first.message_id))
    assert once.is_empty()


def test_a_batch_is_checked_message_by_message(client, once):
    first, second = message("first"), message("second")
    once.send(first)
    with client.get_queue_sender(once.name) as sender:
        sender.send_messages([message("again", message_id=first.message_id), second, second])
    assert [one.message_id for one in once.take(2)] == [first.message_id, second.message_id]
    assert once.is_empty()
