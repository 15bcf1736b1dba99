"""`azure.servicebus.aio`: actions and correlation filters, a copy's own life, forwarding, what waits at the topic.

This SDK manages rules over HTTP alone.
"""

from datetime import datetime, timedelta, timezone

import pytest

from aio_support import Queue, receive
from support import DEAD_LETTER, body_of, message
from virtual_clock import Broker


@pytest.fixture
def topics():
    with Broker("topics.json") as broker:
        yield broker


class Events(Queue):
    """The topic `events`, whose messages are taken from its subscriptions."""

    def __init__(self, broker):
        super().__init__(broker, "events")

    def sender(self):
        return self.client.get_topic_sender(self.name)

    def subscription(self, name, **options):
        return self.client.get_subscription_receiver(self.name, name, **options)

    async def take_one(self, name, **options):
        async with self.subscription(name, **options) as receiver:
            (taken,) = await receive(receiver)
            await receiver.complete_message(taken)
            return taken

    async def peeked(self, name):
        async with self.subscription(name) as receiver:
            return [one.message_id for one in await receiver.peek_messages(100)]


def order(subject="order", **properties):
    return message(subject=subject, application_properties=properties)


async def test_an_action_changes_the_copy_of_its_subscription_alone(topics):
    async with Events(topics) as events:
        sent = order(amount=500)
        await events.send(sent)
        changed = await events.take_one("big")
        assert (changed.message_id, changed.subject) == (sent.message_id, "big order")
        assert changed.application_properties == {b"amount": 500, b"priority": b"high", b"RuleName": b"amount"}
        unchanged = await events.take_one("all")
        assert (unchanged.subject, unchanged.application_properties) == ("order", {b"amount": 500})


async def test_a_correlation_filter_selects_by_all_that_it_names(topics):
    async with Events(topics) as events:
        wanted = order(colour="red")
        await events.send(order(colour="blue"), order("offer", colour="red"), order(), wanted)
        assert await events.peeked("red") == [wanted.message_id]
        assert len(await events.peeked("all")) == 4


async def test_a_copy_is_locked_abandoned_and_dead_lettered_like_a_queues_message(topics):
    async with Events(topics) as events:
        sent = message("again")
        await events.send(sent)
        async with events.subscription("all") as receiver:
            for _ in range(2):
                (received,) = await receive(receiver)
                await receiver.abandon_message(received)
        dead = await events.take_one("all", sub_queue=DEAD_LETTER)
        assert (dead.message_id, dead.dead_letter_reason) == (sent.message_id, "MaxDeliveryCountExceeded")


async def test_a_subscription_forwards_to_a_queue(topics):
    async with Events(topics) as events:
        await events.send(message("kept", subject="archived"))
        (kept,) = await events.take(queue="archive")
        assert body_of(kept) == b"kept"


async def test_what_is_scheduled_waits_at_the_topic(topics):
    async with Events(topics) as events, events.sender() as sender:
        kept = message("kept")
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        await sender.schedule_messages(kept, later)
        await sender.cancel_scheduled_messages(await sender.schedule_messages(message("cancelled"), later))
        assert await events.peeked("all") == []
        topics.advance("PT61M")
        assert await events.peeked("all") == [kept.message_id]
