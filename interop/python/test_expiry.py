"""Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving."""

from datetime import timedelta

from support import DEAD_LETTER, eventually, message


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


def test_an_unexpired_message_shows_when_it_will_expire(plain):
    plain.send(message(time_to_live=timedelta(minutes=5)), message())
    limited, unlimited = plain.take(2)
    assert limited.time_to_live == timedelta(minutes=5)
    # The queue's own time to live of one hour is default and ceiling.
    assert unlimited.time_to_live == timedelta(hours=1)
    for received in (limited, unlimited):
        announced = received.raw_amqp_message.properties.absolute_expiry_time
        assert announced == round(received.expires_at_utc.timestamp() * 1000)
