"""Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving."""

from support import eventually, message


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


def test_an_unexpired_message_shows_when_it_will_expire(plain):
    plain.send(message(ttl=300), message(), message(ttl=7200))
    # The queue's own time to live of one hour is default and ceiling.
    for received, ttl in zip(plain.take(3), (300, 3600, 3600), strict=True):
        assert received.ttl == ttl
        enqueued = received.annotations["x-opt-enqueued-time"]
        assert round(received.expiry_time * 1000) == enqueued + ttl * 1000


def test_without_any_limit_nothing_expires(forever):
    forever.send(message())
    (received,) = forever.take()
    assert received.ttl == 0
    assert received.expiry_time == 0
