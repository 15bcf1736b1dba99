"""Scheduled messages: by operation and by annotation, seen in a peek, cancelled, received at their time."""

from datetime import datetime, timedelta, timezone

import pytest

from azure.servicebus import ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError

from support import connect, message


def moment(seconds):
    """So many seconds from now, in whole milliseconds as the wire has them."""
    now = datetime.now(timezone.utc).replace(microsecond=0)
    return now + timedelta(seconds=seconds)


@pytest.fixture
def client():
    """The SDK would ask again, for ten seconds in all, when there is nothing to cancel."""
    with connect(retry_total=0) as client:
        yield client


def test_scheduled_messages_come_at_their_time_and_cancelled_ones_do_not(plain, client):
    due = moment(3)
    kept, cancelled, also_kept = message("kept"), message("cancelled"), message("also kept")
    with client.get_queue_sender(plain.name) as sender:
        numbers = sender.schedule_messages([kept, cancelled, also_kept], due)
        assert len(set(numbers)) == 3 and numbers == sorted(numbers)
        peeked = plain.peek()
        assert [one.sequence_number for one in peeked] == numbers
        assert {one.state for one in peeked} == {ServiceBusMessageState.SCHEDULED}
        sender.cancel_scheduled_messages(numbers[1])
        with pytest.raises(MessageNotFoundError):
            sender.cancel_scheduled_messages([numbers[0], numbers[1]])
    received = plain.take(2)
    assert [one.message_id for one in received] == [kept.message_id, also_kept.message_id]
    for one in received:
        assert one.scheduled_enqueue_time_utc == due
        assert one.enqueued_time_utc >= due
        assert one.sequence_number > max(numbers)
        assert one.enqueued_sequence_number is None
    assert plain.is_empty()


def test_one_number_is_given_for_one_message_and_it_can_not_be_cancelled_twice(plain, client):
    with client.get_queue_sender(plain.name) as sender:
        numbers = sender.schedule_messages(message(), moment(60))
        assert len(numbers) == 1
        sender.cancel_scheduled_messages(numbers)
        for missing in [numbers, [-1]]:
            with pytest.raises(MessageNotFoundError):
                sender.cancel_scheduled_messages(missing)
    assert plain.is_empty()


def test_messages_that_are_sent_with_a_time_come_by_time(plain):
    second = message("second", scheduled_enqueue_time_utc=moment(3))
    first = message("first", scheduled_enqueue_time_utc=moment(2))
    past = message("past", scheduled_enqueue_time_utc=moment(-60))
    plain.send(second, first, past)
    received = plain.take(3)
    assert [one.message_id for one in received] == [one.message_id for one in (past, first, second)]
    assert received[1].enqueued_time_utc >= first.scheduled_enqueue_time_utc
