"""Delayed retry: a message waits after a failed delivery, as its queue's retry-backoff says.

This SDK's abandon takes no properties, so a receiver cannot set the wait itself.
"""

from azure.servicebus import ServiceBusMessageState

from support import Queue, connect, eventually, message, receive

ENTITIES = "retry.json"


def test_the_wait_grows_with_each_failed_delivery(broker):
    broker.freeze()
    with connect(broker.connection_string) as client, client.get_queue_receiver("backoff") as receiver:
        queue = Queue(client, "backoff")
        failing, behind = message(), message()
        queue.send(failing, behind)
        for count, wait in enumerate(["PT10S", "PT30S", "PT1M"]):
            (received,) = receive(receiver)
            assert received.message_id == failing.message_id
            assert received.delivery_count == count
            receiver.abandon_message(received)
            eventually(lambda: waits(queue, received), "the message's wait")
            if count == 0:
                (other,) = receive(receiver)
                assert other.message_id == behind.message_id
                receiver.complete_message(other)
            broker.advance(wait)
        (received,) = receive(receiver)
        assert received.sequence_number == 1
        receiver.complete_message(received)
        eventually(queue.is_empty, "the end of the message")


def waits(queue, received):
    return any(
        one.sequence_number == received.sequence_number and one.state == ServiceBusMessageState.SCHEDULED
        for one in queue.peek()
    )
