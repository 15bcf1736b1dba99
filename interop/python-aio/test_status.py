"""`azure.servicebus.aio`: the status of a queue, each way, and one that vanishes when nobody uses it."""

import pytest

from azure.servicebus.exceptions import MessagingEntityDisabledError, ServiceBusAuthenticationError

from aio_support import Queue, receive
from support import message


async def send(queue):
    async with queue.sender() as sender:
        await sender.send_messages(message())


async def take(queue):
    async with queue.receiver() as receiver:
        return await receiver.receive_messages(max_message_count=1, max_wait_time=1)


async def is_refused(broker, operation, name):
    async with Queue(broker, name, retry_total=0) as queue:
        with pytest.raises(MessagingEntityDisabledError, match="is currently disabled"):
            await operation(queue)


@pytest.mark.parametrize("name", ["closed", "no-entry"])
async def test_a_queue_that_refuses_senders_says_that_it_is_disabled(own_broker, name):
    await is_refused(own_broker, send, name)


@pytest.mark.parametrize("name", ["closed", "no-exit"])
async def test_a_queue_that_refuses_receivers_says_that_it_is_disabled(own_broker, name):
    await is_refused(own_broker, take, name)


async def test_a_queue_that_refuses_only_receivers_takes_messages(own_broker):
    async with Queue(own_broker, "no-exit") as queue:
        await send(queue)


async def test_a_queue_that_refuses_only_senders_is_received_from(own_broker):
    async with Queue(own_broker, "no-entry") as queue:
        assert await take(queue) == []


async def test_a_queue_vanishes_when_nobody_has_used_it_for_its_five_minutes(own_broker):
    async with Queue(own_broker, "fleeting", retry_total=0) as fleeting:
        sent = message()
        async with fleeting.sender() as sender, fleeting.receiver() as receiver:
            await sender.send_messages(sent)
            own_broker.advance("PT4M")
            (received,) = await receive(receiver)
            assert received.message_id == sent.message_id
            own_broker.advance("PT4M")
            await receiver.complete_message(received)
            await sender.send_messages(message())
        own_broker.advance("PT5M")
        with pytest.raises(ServiceBusAuthenticationError) as raised:
            await send(fleeting)
        assert raised.value.inner_exception.status_code == 404
