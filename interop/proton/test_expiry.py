"""Time to live: expired messages go to the dead-letter queue or are dropped, with nobody receiving; the others show
exactly the time that they were given.
"""

import time

import pytest

from proton import symbol, timestamp

from support import ENQUEUED_TIME, SCHEDULED_TIME, Queue, eventually, message


def test_an_expired_message_goes_to_the_dead_letter_queue(ttl):
    sent = message("too late", ttl=1)
    ttl.send(sent)
    (dead,) = eventually(lambda: ttl.dead_letter.peek(), "the expiry")
    assert dead.id == sent.id
    assert dead.properties == {
        "DeadLetterReason": "TTLExpiredException",
        "DeadLetterErrorDescription": "The message expired and was dead lettered.",
    }
    assert ttl.peek() == []


def test_the_default_of_the_queue_drops_an_expired_message(ttl_drop):
    ttl_drop.send(message(), message(ttl=3600))
    eventually(lambda: ttl_drop.peek() == [], "the expiry of both messages")
    assert ttl_drop.dead_letter.peek() == []


def milliseconds(seconds):
    return round(seconds * 1000)


def lives(received):
    """The time to live as the header has it, and from the creation to the end, in milliseconds."""
    return milliseconds(received.ttl), milliseconds(received.expiry_time) - milliseconds(received.creation_time)


# The queue's own time to live of one hour is default and ceiling.
HOUR = 3_600_000
CREATED = 1709209815.25


@pytest.mark.parametrize(
    ("sent", "expected"), [(300, 300_000), (12.345, 12_345), (None, HOUR), (7200, HOUR), (49 * 86_400, HOUR)]
)
@pytest.mark.parametrize("created", [None, CREATED], ids=["created_by_the_broker", "created_by_the_sender"])
def test_the_time_to_live_is_what_was_sent_or_the_queues_own(plain, sent, expected, created):
    fields = {"ttl": sent} if sent else {}
    # What a sender says of the end does not count.
    fields |= {"creation_time": created, "expiry_time": created + 5} if created else {}
    plain.send(message(**fields))
    (received,) = plain.take()
    assert lives(received) == (expected, expected)
    came = created if created else received.annotations[ENQUEUED_TIME] / 1000
    assert milliseconds(received.creation_time) == milliseconds(came)


def test_a_received_message_that_is_sent_again_keeps_its_time_to_live(own_broker, own_connection):
    orders = Queue(own_connection, "orders")
    orders.send(message("its own", ttl=300), message("the queue's"))
    for _ in range(3):
        own_broker.advance("PT1M")
        received = orders.take(2)
        assert [lives(one) for one in received] == [(300_000, 300_000), (86_400_000, 86_400_000)]
        orders.send(*received)


def test_a_scheduled_message_lives_from_its_activation(own_broker, own_connection):
    orders = Queue(own_connection, "orders")
    due = timestamp(milliseconds(time.time()) + HOUR)
    orders.send(message(ttl=300, annotations={symbol(SCHEDULED_TIME): due}))
    own_broker.advance("PT61M")
    (received,) = orders.take()
    assert lives(received) == (300_000, 300_000)
    assert milliseconds(received.creation_time) == received.annotations[ENQUEUED_TIME]


def test_a_time_to_live_that_the_header_can_not_hold_stands_in_the_properties(forever):
    most = 2**32 - 1
    sent = message(ttl=most / 1000, creation_time=CREATED, expiry_time=CREATED + 100 * 86_400)
    forever.send(sent)
    (received,) = forever.take()
    assert lives(received) == (most, 100 * 86_400_000)
    assert received.creation_time == CREATED


def test_without_any_limit_nothing_expires(forever):
    forever.send(message(), message(creation_time=CREATED, expiry_time=CREATED + 5))
    without, given = forever.take(2)
    assert (without.ttl, without.creation_time, without.expiry_time) == (0, 0, 0)
    assert (given.ttl, given.creation_time, given.expiry_time) == (0, CREATED, CREATED + 5)
