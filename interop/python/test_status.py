"""Entity status and auto-delete on idle, from a Config.json and under a virtual clock."""

import pytest

from azure.servicebus.exceptions import MessagingEntityDisabledError, ServiceBusAuthenticationError

from support import connect, message, receive


@pytest.fixture(scope="module")
def client(broker):
    with connect(broker.connection_string, retry_total=0) as client:
        yield client


def send(client, queue):
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(message())


def take(client, queue):
    with client.get_queue_receiver(queue, max_wait_time=5) as receiver:
        receiver.receive_messages(max_message_count=1)


@pytest.mark.parametrize("operation, queue", [(send, "closed"), (take, "closed"), (send, "no-entry"), (take, "no-exit")])
def test_a_disabled_queue_refuses_with_the_error_for_that(client, operation, queue):
    with pytest.raises(MessagingEntityDisabledError, match="is currently disabled"):
        operation(client, queue)


def test_a_queue_that_refuses_only_receivers_takes_messages(client):
    send(client, "no-exit")


def test_a_queue_vanishes_when_nobody_has_used_it_for_its_five_minutes(broker, client):
    sent = message()
    with client.get_queue_sender("fleeting") as sender:
        sender.send_messages(sent)
        broker.advance("PT4M")
        with client.get_queue_receiver("fleeting") as receiver:
            (received,) = receive(receiver)
            assert received.message_id == sent.message_id
            broker.advance("PT4M")
            receiver.complete_message(received)
        sender.send_messages(message())
    broker.advance("PT5M")
    with pytest.raises(ServiceBusAuthenticationError) as raised:
        send(client, "fleeting")
    assert raised.value.inner_exception.status_code == 404
