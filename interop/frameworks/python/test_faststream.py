"""FastStream with its Service Bus broker: an application's handlers, and what becomes of messages they fail on."""

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus.exceptions import ServiceBusAuthenticationError
from faststream import AckPolicy
from faststream_azure_servicebus import ServiceBusBroker

from support import CONNECTION_STRING, PATIENCE, body_of, eventually, peek, peek_dead


class Inbox:
    """What handlers were given."""

    def __init__(self):
        self.arrivals = asyncio.Queue()

    def put(self, what):
        self.arrivals.put_nowait(what)

    async def take(self, count=1):
        return [await asyncio.wait_for(self.arrivals.get(), PATIENCE) for _ in range(count)]


def serve(define, use):
    """Runs a broker with the handlers that `define` adds for as long as `use` takes."""

    async def all_of_it():
        broker = ServiceBusBroker(CONNECTION_STRING)
        inbox = Inbox()
        define(broker, inbox)
        async with broker:
            await broker.start()
            await use(broker, inbox)

    asyncio.run(all_of_it())


def test_a_handler_gets_what_was_published_to_its_queue(queue, client):
    def define(broker, inbox):
        @broker.subscriber(queue=queue, max_wait_time=1)
        async def handle(body: dict) -> None:
            inbox.put(body)

    async def use(broker, inbox):
        await broker.publish({"id": 1}, queue=queue)
        assert await inbox.take() == [{"id": 1}]

    serve(define, use)
    assert peek(client, queue) == []


def test_each_subscription_of_a_topic_has_a_handler(topic):
    def define(broker, inbox):
        @broker.subscriber(topic=topic, subscription="all", max_wait_time=1)
        async def handle_all(body: str) -> None:
            inbox.put(("all", body))

        @broker.subscriber(topic=topic, subscription="red", max_wait_time=1)
        async def handle_red(body: str) -> None:
            inbox.put(("red", body))

    async def use(broker, inbox):
        await broker.publish("a", topic=topic, headers={"colour": "red"})
        await broker.publish("b", topic=topic, headers={"colour": "blue"})
        assert sorted(await inbox.take(3)) == [("all", "a"), ("all", "b"), ("red", "a")]

    serve(define, use)


def test_a_message_that_fails_is_dead_lettered_by_default(queue, client):
    def define(broker, inbox):
        @broker.subscriber(queue=queue, max_wait_time=1)
        async def handle(body: str) -> None:
            inbox.put(body)
            raise ValueError("no")

    async def use(broker, inbox):
        await broker.publish("bad", queue=queue)
        assert await inbox.take() == ["bad"]

    serve(define, use)
    [dead] = eventually(lambda: peek_dead(client, queue), "a dead letter")
    assert body_of(dead) == b"bad"


def test_a_message_that_is_given_back_comes_until_its_deliveries_are_used_up(queue, client):
    def define(broker, inbox):
        @broker.subscriber(queue=queue, max_wait_time=1, ack_policy=AckPolicy.NACK_ON_ERROR)
        async def handle(body: str) -> None:
            inbox.put(body)
            raise ValueError("no")

    async def use(broker, inbox):
        await broker.publish("poison", queue=queue)
        assert await inbox.take(3) == ["poison"] * 3

    serve(define, use)
    [dead] = eventually(lambda: peek_dead(client, queue), "a dead letter")
    assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"


def test_a_request_is_answered_over_a_reply_queue(queue, administration, fresh):
    replies = fresh("replies")
    administration.create_queue(replies)

    def define(broker, inbox):
        @broker.subscriber(queue=queue, max_wait_time=1)
        async def handle(body: dict) -> dict:
            return {"answer": body["value"] * 2}

    async def use(broker, inbox):
        response = await broker.request({"value": 21}, queue=queue, reply_to=replies, timeout=PATIENCE)
        assert await response.decode() == {"answer": 42}

    serve(define, use)
    administration.delete_queue(replies)


def test_a_batch_is_published(queue):
    def define(broker, inbox):
        @broker.subscriber(queue=queue, max_wait_time=1)
        async def handle(body: int) -> None:
            inbox.put(body)

    async def use(broker, inbox):
        await broker.publish_batch(1, 2, 3, queue=queue)
        assert await inbox.take(3) == [1, 2, 3]

    serve(define, use)


def test_a_message_that_is_scheduled_waits(queue, client):
    later = datetime.now(timezone.utc) + timedelta(hours=1)

    async def use(broker, inbox):
        await broker.publish("later", queue=queue, scheduled_enqueue_time=later)

    serve(lambda broker, inbox: None, use)
    [scheduled] = peek(client, queue)
    assert abs(scheduled.scheduled_enqueue_time_utc - later) < timedelta(seconds=1)


def test_a_wrong_key_is_refused(queue):
    async def publish():
        async with ServiceBusBroker(CONNECTION_STRING.replace("SAS_KEY_VALUE", "WRONG_KEY_VALUE")) as broker:
            await broker.publish("x", queue=queue)

    with pytest.raises(ServiceBusAuthenticationError):
        asyncio.run(publish())
