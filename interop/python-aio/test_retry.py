"""`azure.servicebus.aio`: a message waits after a failed delivery, as its queue's retry-backoff says."""

from azure.servicebus import ServiceBusMessageState

from aio_support import Queue, eventually, receive
from support import message
from virtual_clock import Broker


async def test_the_wait_grows_with_each_failed_delivery():
    with Broker("retry.json") as broker:
        broker.freeze()
        async with Queue(broker, "backoff") as backoff, backoff.receiver() as receiver:
            failing, behind = message(), message()
            await backoff.send(failing, behind)
            for count, wait in enumerate(["PT10S", "PT30S", "PT1M"]):
                [received] = await receive(receiver)
                assert received.message_id == failing.message_id
                assert received.delivery_count == count
                await receiver.abandon_message(received)
                await eventually(lambda: waits(backoff, failing), "the message's wait")
                if count == 0:
                    [other] = await receive(receiver)
                    assert other.message_id == behind.message_id
                    await receiver.complete_message(other)
                broker.advance(wait)
            [received] = await receive(receiver)
            assert received.message_id == failing.message_id
            assert received.sequence_number == 1
            await receiver.complete_message(received)
            await eventually(backoff.is_empty, "the end of the message")


async def waits(queue, sent):
    return any(
        one.message_id == sent.message_id and one.state == ServiceBusMessageState.SCHEDULED
        for one in await queue.peek()
    )
