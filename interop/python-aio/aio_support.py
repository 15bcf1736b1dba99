"""The asynchronous half of the SDK, `azure.servicebus.aio`: a queue with the steps that tests repeat.

Each test has a broker of its own, so its queues are empty, and moves that broker's clock instead of waiting.
"""

import asyncio
import time

from azure.servicebus.aio import ServiceBusClient

from support import PATIENCE, RECEIVE_AND_DELETE


class Queue:
    """One queue of a broker and a client for it, for the time of an `async with` block.

    A link takes this SDK some time to open, so those of the steps below stay open until the end.
    """

    def __init__(self, broker, name="orders", **options):
        self.name = name
        self.client = ServiceBusClient.from_connection_string(broker.connection_string, **options)
        self.links = {}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.client.close()

    def sender(self):
        """A sender of the test's own."""
        return self.client.get_queue_sender(self.name)

    def receiver(self, **options):
        """A receiver of the test's own."""
        return self.client.get_queue_receiver(self.name, **options)

    async def kept(self, name, make):
        if name not in self.links:
            self.links[name] = await make().__aenter__()
        return self.links[name]

    async def send(self, *messages):
        sender = await self.kept("sender", self.sender)
        for one in messages:
            await sender.send_messages(one)

    async def observer(self, queue=None, sub_queue=None):
        """Takes in receive-and-delete and peeks; it holds no credit between its calls."""
        options = {"receive_mode": RECEIVE_AND_DELETE, "sub_queue": sub_queue}
        make = lambda: self.client.get_queue_receiver(queue or self.name, **options)
        return await self.kept((queue, sub_queue), make)

    async def take(self, count=1, **place):
        """Receives exactly `count` messages in receive-and-delete."""
        return await receive(await self.observer(**place), count)

    async def peek(self, **place):
        observer = await self.observer(**place)
        return await observer.peek_messages(max_message_count=250, sequence_number=1)

    async def is_empty(self):
        return not await self.peek()


async def receive(receiver, count=1):
    """Receives exactly `count` messages, in as many calls as the SDK needs."""
    received = []
    deadline = time.monotonic() + PATIENCE
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} messages within {PATIENCE} s"
        received += await receiver.receive_messages(max_message_count=count - len(received), max_wait_time=5)
    return received


async def eventually(condition, what):
    """Awaits `condition` again and again until it returns something true, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while not (result := await condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} s"
        await asyncio.sleep(0.05)
    return result
