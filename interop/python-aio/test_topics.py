"""`azure.servicebus.aio`: topics, whose subscriptions get copies of what they select; queues that are closed."""

import pytest

from azure.servicebus.exceptions import MessagingEntityDisabledError

from aio_support import Queue, receive
from support import DEAD_LETTER, body_of, message
from virtual_clock import Broker

TOPIC = "events"


@pytest.fixture
def topics():
    with Broker("topics.json") as broker:
        yield broker


class Topic(Queue):
    """A topic, whose messages are taken from its subscriptions."""

    def sender(self):
        return self.client.get_topic_sender(self.name)

    def subscription(self, name, **options):
        return self.client.get_subscription_receiver(self.name, name, **options)

    async def take_from(self, name, count=1, **options):
        async with self.subscription(name, **options) as receiver:
            taken = await receive(receiver, count)
            for one in taken:
                await receiver.complete_message(one)
            return [body_of(one).decode() for one in taken]


async def test_every_subscription_that_selects_a_message_gets_its_copy(topics):
    async with Topic(topics, TOPIC) as events:
        await events.send(
            message("small", subject="order", application_properties={"amount": 5, "colour": "red"}),
            message("big", subject="order", application_properties={"amount": 500, "colour": "blue"}),
        )
        assert await events.take_from("all", 2) == ["small", "big"]
        assert await events.take_from("red") == ["small"]
        assert await events.take_from("big") == ["big"]


async def test_dead_letters_are_those_of_one_subscription(topics):
    async with Topic(topics, TOPIC) as events:
        await events.send(message("poison", subject="order", application_properties={"colour": "red"}))
        async with events.subscription("red") as receiver:
            await receiver.dead_letter_message((await receive(receiver))[0], reason="bad")
        assert await events.take_from("red", sub_queue=DEAD_LETTER) == ["poison"]
        assert await events.take_from("all") == ["poison"]


async def test_sessions_of_a_subscription_are_received_in_order(topics):
    async with Topic(topics, TOPIC) as events:
        await events.send(*(message(str(number), session_id="s") for number in range(3)))
        assert await events.take_from("sessions", 3, session_id="s") == ["0", "1", "2"]


async def test_a_disabled_queue_refuses_with_the_error_for_that(own_broker):
    async with Queue(own_broker, "closed", retry_total=0) as closed:
        with pytest.raises(MessagingEntityDisabledError, match="is currently disabled"):
            await closed.send(message())
