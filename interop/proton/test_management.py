"""The `$management` node: peek, receive by number, dispositions, batch delete, and what it does not know."""

import uuid

import pytest

from proton import Message, uint, ulong

from support import (
    ACTIVE,
    ENQUEUED_TIME,
    LOCKED_UNTIL,
    LOCK_TOKEN,
    MESSAGE_STATE,
    SEQUENCE_NUMBER,
    UNLOCKED,
    decoded,
    message,
)


@pytest.mark.parametrize("request_id", [ulong(2**63), uuid.uuid4(), "text", b"\x00\xff"], ids=repr)
def test_an_answer_correlates_by_an_id_of_the_same_type(plain, request_id):
    with plain.management() as management:
        answer = management.request(
            "com.microsoft:peek-message", {"from-sequence-number": 1, "message-count": uint(1)}, request_id
        )
        assert answer.status == 204
        # Proton reads an id of each type as another type of Python's.
        assert type(answer.message.correlation_id) is type(Message(id=request_id).id)


def test_peek_of_an_empty_queue_is_204_with_an_empty_map(plain):
    with plain.management() as management:
        answer = management.request("com.microsoft:peek-message", {"from-sequence-number": 1, "message-count": uint(9)})
        assert (answer.status, answer.body) == (204, {})


def test_peek_shows_messages_in_order_with_state_and_without_lock(plain):
    sent = [message(f"number {number}") for number in range(5)]
    plain.send(*sent)
    with plain.management() as management:
        peeked = management.peek(count=3)
        assert [one.id for one in peeked] == [one.id for one in sent[:3]]
        rest = management.peek(first=peeked[-1].annotations[SEQUENCE_NUMBER] + 1)
        assert [one.body for one in rest] == ["number 3", "number 4"]
    for one in peeked:
        assert one.annotations[MESSAGE_STATE] == ACTIVE
        assert one.annotations[LOCKED_UNTIL] == UNLOCKED
        assert one.delivery_count == 0
    assert [one.id for one in plain.take(5)] == [one.id for one in sent]


def test_peek_shows_a_locked_message(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    (peeked,) = plain.peek()
    # Each time that it is shown, the deadline is counted from the moment.
    assert abs(peeked.annotations[LOCKED_UNTIL] - received.locked_until) < 1000
    receiver.complete(received)


def deferred(queue):
    """Sends and defers one message; returns its number."""
    queue.send(message("later"))
    receiver = queue.receiver()
    received = receiver.receive()
    receiver.defer(received)
    receiver.close()
    return received.number


def test_a_deferred_message_comes_by_its_number_with_a_lock(plain):
    number = deferred(plain)
    with plain.management() as management:
        answer = management.receive_by_number([number])
        assert answer.status == 200
        (entry,) = answer.body["messages"]
        received = decoded(entry["message"])
        assert received.body == "later"
        assert received.delivery_count == 1
        assert received.annotations[SEQUENCE_NUMBER] == number
        assert received.instructions[LOCK_TOKEN] == entry["lock-token"]
        assert LOCKED_UNTIL in received.annotations
        assert management.renew_lock(entry["lock-token"]).status == 200
        assert management.update_disposition("completed", entry["lock-token"]).status == 200
        assert management.peek() == []


def test_a_deferred_message_can_be_received_and_deleted(plain):
    number = deferred(plain)
    with plain.management() as management:
        assert management.receive_by_number([number], settle_mode=0).status == 200
        assert management.peek() == []


@pytest.mark.parametrize("make_number", [lambda queue: 2**40, lambda queue: active(queue)], ids=["unknown", "active"])
def test_a_number_that_is_not_deferred_is_not_found(plain, make_number):
    with plain.management() as management:
        answer = management.receive_by_number([make_number(plain)])
        assert (answer.status, answer.condition) == (404, "com.microsoft:message-not-found")


def active(queue):
    queue.send(message())
    return queue.peek()[0].annotations[SEQUENCE_NUMBER]


def test_a_disposition_can_dead_letter_with_reason_and_properties(plain):
    plain.send(message(properties={"kept": "yes"}))
    received = plain.receiver().receive()
    with plain.management() as management:
        answer = management.update_disposition(
            "suspended",
            received.token,
            **{
                "deadletter-reason": "By token",
                "deadletter-description": "Over the management node.",
                "properties-to-modify": {"added": True},
            },
        )
        assert answer.status == 200
    (dead,) = plain.dead_letter.take()
    assert dead.properties == {
        "kept": "yes",
        "added": True,
        "DeadLetterReason": "By token",
        "DeadLetterErrorDescription": "Over the management node.",
    }


def test_a_disposition_can_abandon(plain):
    plain.send(message())
    receiver = plain.receiver()
    with plain.management() as management:
        assert management.update_disposition("abandoned", receiver.receive().token).status == 200
    received = receiver.receive()
    assert received.message.delivery_count == 1
    receiver.complete(received)


@pytest.mark.parametrize("spelling", ["defered", "deferred"])
def test_a_disposition_can_defer(plain, spelling):
    plain.send(message())
    received = plain.receiver().receive()
    with plain.management() as management:
        assert management.update_disposition(spelling, received.token).status == 200
        assert management.receive_by_number([received.number], settle_mode=0).status == 200


def test_an_unknown_token_is_lock_lost(plain):
    with plain.management() as management:
        answer = management.update_disposition("completed", uuid.uuid4())
        assert (answer.status, answer.condition) == (410, "com.microsoft:message-lock-lost")


def test_a_purge_deletes_all_but_what_somebody_holds(plain):
    plain.send(*[message() for _ in range(7)])
    receiver = plain.receiver()
    held = receiver.receive()
    with plain.management() as management:
        assert management.purge(batch=4) == [4, 2]
        (left,) = management.peek()
        assert left.annotations[SEQUENCE_NUMBER] == held.number
        assert management.purge() == []
    receiver.complete(held)


def test_a_batch_delete_stops_at_its_moment_and_takes_dead_letters_by_their_node(plain):
    plain.send(message())
    (sent,) = plain.peek()
    enqueued = sent.annotations[ENQUEUED_TIME]
    with plain.management() as management:
        assert management.batch_delete(9, enqueued).status == 204
        received = plain.receiver().receive()
        assert management.update_disposition("suspended", received.token).status == 200
    with plain.dead_letter.management() as management:
        answer = management.batch_delete(9, enqueued + 1)
        assert (answer.status, answer.body) == (200, {"message-count": 1})


@pytest.mark.parametrize("count", [-1, 4_001])
def test_a_batch_delete_of_too_few_or_too_many_is_refused(plain, count):
    with plain.management() as management:
        answer = management.batch_delete(count, 0)
        assert (answer.status, answer.condition) == (400, "com.microsoft:argument-out-of-range")


def test_an_unknown_operation_is_501(plain):
    with plain.management() as management:
        answer = management.request("com.microsoft:make-coffee", {})
        assert (answer.status, answer.condition) == (501, "amqp:not-implemented")
        assert management.peek() == []
