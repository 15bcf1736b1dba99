"""Settling by outcome, both ways a generic client does it; the delivery count and its limit.

`header.delivery-count` on the wire is the number of failed deliveries before the present one (docs/spec/amqp.md#4.4).
"""

from proton import Delivery

from support import DEFERRED, LOCK_TOKEN, MESSAGE_STATE, SEQUENCE_NUMBER, decoded, eventually, message


def test_peek_lock_hides_a_message_until_it_is_accepted(plain):
    sent = message()
    plain.send(sent)
    holder = plain.receiver()
    received = holder.receive()
    assert received.message.id == sent.id
    assert plain.receiver().receive(patience=0.5) is None
    holder.complete(received)
    assert plain.peek() == []


def test_a_delivery_accepted_and_settled_at_once_is_removed(connection, plain):
    """What Proton does when left alone: receiver-settle-mode first, one settled disposition."""
    plain.send(message())
    receiver = connection.create_receiver(plain.name)
    receiver.receive()
    receiver.accept()
    eventually(lambda: plain.peek() == [], "the removal of the accepted message")


def test_receive_and_delete_removes_at_delivery(plain):
    sent = message()
    plain.send(sent)
    received = plain.deleting_receiver().receive()
    assert received.message.id == sent.id
    assert received.delivery.settled
    assert plain.peek() == []


def test_modified_counts_a_failed_delivery(plain):
    sent = message()
    plain.send(sent)
    receiver = plain.receiver()
    first = receiver.receive()
    assert first.message.delivery_count == 0
    receiver.abandon(first)
    second = receiver.receive()
    assert (second.message.id, second.number) == (sent.id, first.number)
    assert second.message.delivery_count == 1
    assert second.token != first.token
    receiver.complete(second)


def test_modified_annotations_become_application_properties(plain):
    plain.send(message(properties={"kept": "old", "changed": "old"}))
    receiver = plain.receiver()
    receiver.abandon(receiver.receive(), {"changed": "new", "added": 7})
    received = receiver.receive()
    assert received.message.properties == {"kept": "old", "changed": "new", "added": 7}
    receiver.complete(received)


def test_released_counts_nothing(plain):
    plain.send(message())
    receiver = plain.receiver()
    assert receiver.settle(receiver.receive(), Delivery.RELEASED) == (Delivery.RELEASED, None)
    again = receiver.receive()
    assert again.message.delivery_count == 0
    receiver.complete(again)


def test_rejected_goes_to_the_dead_letter_queue_with_its_reason(plain):
    sent = message(properties={"kept": "yes"})
    plain.send(sent)
    receiver = plain.receiver()
    received = receiver.receive()
    receiver.reject(
        received, DeadLetterReason="Unreadable", DeadLetterErrorDescription="The body is not JSON.", stage="parse"
    )
    (dead,) = plain.dead_letter.take()
    assert dead.id == sent.id
    assert dead.annotations[SEQUENCE_NUMBER] == received.number
    assert dead.properties == {
        "kept": "yes",
        "DeadLetterReason": "Unreadable",
        "DeadLetterErrorDescription": "The body is not JSON.",
        "stage": "parse",
    }
    assert plain.peek() == []


def test_rejected_without_an_error_goes_to_the_dead_letter_queue(plain):
    sent = message()
    plain.send(sent)
    receiver = plain.receiver()
    receiver.reject(receiver.receive())
    (dead,) = plain.dead_letter.take()
    assert dead.id == sent.id
    assert "DeadLetterReason" not in (dead.properties or {})


def test_a_dead_letter_cannot_be_dead_lettered_again(plain):
    plain.send(message())
    receiver = plain.receiver()
    receiver.reject(receiver.receive())
    dead_receiver = plain.dead_letter.receiver()
    dead = dead_receiver.receive()
    assert dead_receiver.settle(dead, Delivery.REJECTED) == (Delivery.REJECTED, "amqp:not-allowed")
    with plain.dead_letter.management() as management:
        assert management.update_disposition("completed", dead.token).status == 200
    assert plain.dead_letter.peek() == []


def test_modified_undeliverable_here_defers(plain):
    sent = message()
    plain.send(sent)
    receiver = plain.receiver()
    received = receiver.receive()
    receiver.defer(received)
    assert [one.annotations[MESSAGE_STATE] for one in plain.peek()] == [DEFERRED]
    assert receiver.receive(patience=0.5) is None
    with plain.management() as management:
        answer = management.receive_by_number([received.number])
        assert answer.status == 200
        token = answer.body["messages"][0][LOCK_TOKEN.removeprefix("x-opt-")]
        assert management.update_disposition("completed", token).status == 200
    assert plain.peek() == []


def test_a_defer_raises_the_delivery_count_and_does_not_dead_letter(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    assert received.message.delivery_count == 0
    receiver.defer(received)
    with plain.management() as management:
        # Three is the most that this queue delivers a message without a defer.
        for expected in range(1, 5):
            encoded, token = management.take_deferred(received.number)
            assert decoded(encoded).delivery_count == expected
            assert management.update_disposition("defered", token).status == 200
        assert [one.delivery_count for one in management.peek()] == [5]
        encoded, _ = management.take_deferred(received.number, settle_mode=0)
        assert decoded(encoded).delivery_count == 5
    assert plain.peek() == plain.dead_letter.peek() == []


def test_the_next_abandon_of_a_deferred_message_looks_at_the_count(plain):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    receiver.defer(received)
    with plain.management() as management:
        for settlement in ("defered", "abandoned"):
            _, token = management.take_deferred(received.number)
            assert management.update_disposition(settlement, token).status == 200
    (dead,) = plain.dead_letter.take()
    assert (dead.delivery_count, dead.properties["DeadLetterReason"]) == (3, "MaxDeliveryCountExceeded")


def test_dead_lettering_does_not_raise_the_delivery_count(plain):
    plain.send(message("at once"), message("deferred"))
    receiver = plain.receiver()
    receiver.reject(receiver.receive())
    received = receiver.receive()
    receiver.defer(received)
    with plain.management() as management:
        _, token = management.take_deferred(received.number)
        assert management.update_disposition("suspended", token).status == 200
    assert [(one.body, one.delivery_count) for one in plain.dead_letter.take(2)] == [("at once", 0), ("deferred", 1)]


def test_three_abandoned_deliveries_dead_letter_a_message(plain):
    sent = message()
    plain.send(sent)
    receiver = plain.receiver()
    for expected in range(3):
        received = receiver.receive()
        assert received.message.delivery_count == expected
        receiver.abandon(received)
    (dead,) = plain.dead_letter.take()
    assert dead.id == sent.id
    assert dead.delivery_count == 3
    assert dead.properties == {
        "DeadLetterReason": "MaxDeliveryCountExceeded",
        "DeadLetterErrorDescription": "Message could not be consumed after 3 delivery attempts.",
    }
    assert plain.peek() == []


def test_competing_receivers_get_disjoint_messages(compete):
    sent = [message() for _ in range(60)]
    compete.send(*sent)
    receivers = [compete.receiver() for _ in range(3)]
    got = []
    for _ in range(20):
        for receiver in receivers:
            received = receiver.receive()
            got.append(received.message.id)
            receiver.complete(received)
    assert sorted(got) == sorted(one.id for one in sent)
    assert compete.peek() == []
