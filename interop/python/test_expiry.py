"""Time to live: expired messages go to the dead-letter queue or are dropped, with nobody receiving; the others show
exactly the time that they were given.
"""

from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus.amqp import AmqpAnnotatedMessage

from support import DEAD_LETTER, Queue, connect, eventually, message


def test_an_expired_message_goes_to_the_dead_letter_queue(ttl):
    sent = message("too late", time_to_live=timedelta(seconds=1))
    ttl.send(sent)
    (dead,) = ttl.take(sub_queue=DEAD_LETTER)
    assert dead.message_id == sent.message_id
    assert dead.dead_letter_reason == "TTLExpiredException"
    assert dead.dead_letter_error_description == "The message expired and was dead lettered."
    assert ttl.is_empty()


def test_the_default_of_the_queue_drops_an_expired_message(ttl_drop):
    ttl_drop.send(message(), message(time_to_live=timedelta(hours=1)))
    eventually(ttl_drop.is_empty, "the expiry of both messages")
    assert ttl_drop.peek(sub_queue=DEAD_LETTER) == []


def milliseconds(time):
    return time // timedelta(milliseconds=1)


def lives(received):
    """The time to live as the SDK tells it, and from the message's creation to its end."""
    properties = received.raw_amqp_message.properties
    announced = received.raw_amqp_message.header.time_to_live
    return announced, properties.absolute_expiry_time - properties.creation_time


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (timedelta(seconds=7), timedelta(seconds=7)),
        (timedelta(minutes=5), timedelta(minutes=5)),
        # The queue's own time to live of one hour is default and ceiling.
        (None, timedelta(hours=1)),
        (timedelta(hours=2), timedelta(hours=1)),
    ],
    ids=str,
)
def test_the_time_to_live_is_what_was_sent_or_the_queues_own(plain, sent, expected):
    plain.send(message(time_to_live=sent))
    (received,) = plain.take()
    assert received.time_to_live == expected
    assert received.expires_at_utc == received.enqueued_time_utc + expected
    assert lives(received) == (milliseconds(expected), milliseconds(expected))


def test_the_creation_time_is_the_enqueued_time_unless_the_sender_gave_one(plain):
    moment = datetime(2024, 2, 29, 12, 30, 15, tzinfo=timezone.utc)
    given = AmqpAnnotatedMessage(data_body=b"body", properties={"creation_time": int(moment.timestamp() * 1000)})
    plain.send(message(), given)
    without, with_one = plain.take(2)
    assert created(without) == without.enqueued_time_utc
    assert created(with_one) == moment
    assert lives(with_one) == (3_600_000, 3_600_000)


def created(received):
    created = received.raw_amqp_message.properties.creation_time
    return datetime.fromtimestamp(created / 1000, tz=timezone.utc)


@pytest.mark.parametrize("sent", [timedelta(minutes=5), None], ids=["its_own", "the_queues"])
def test_a_message_that_is_sent_again_keeps_its_time_to_live(own_broker, sent):
    with connect(own_broker.connection_string) as client:
        orders = Queue(client, "orders")
        orders.send(message(time_to_live=sent))
        for _ in range(3):
            own_broker.advance("PT1M")
            (received,) = orders.take()
            assert received.time_to_live == (sent or timedelta(days=1))
            assert lives(received) == (milliseconds(received.time_to_live), milliseconds(received.time_to_live))
            orders.send(received)
