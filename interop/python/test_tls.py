"""TLS, with AMQP or WebSocket inside: nothing but the broker's own certificate authority is trusted.

Without `UseDevelopmentEmulator=true` this SDK speaks TLS and takes no port from the connection string, so the
port is said by `custom_endpoint_address`.
"""

import os

import pytest

from azure.servicebus import TransportType
from azure.servicebus.exceptions import ServiceBusError

from support import Queue, body_of, connect, connection_string, message

TRANSPORTS = [TransportType.Amqp, TransportType.AmqpOverWebsocket]
ENDPOINT = f"sb://{os.environ['RAILBUS_HOST']}:{os.environ['RAILBUS_PORT']}"


def secured(transport, **options):
    text = connection_string().replace("UseDevelopmentEmulator=true;", "")
    assert text != connection_string()
    return connect(text, transport_type=transport, custom_endpoint_address=ENDPOINT, **options)


def exchange(queue, body):
    queue.send(message(body))
    with queue.receiver() as receiver:
        [received] = receiver.receive_messages(max_wait_time=30)
        assert body_of(received) == body
        receiver.renew_message_lock(received)
        receiver.complete_message(received)
    assert queue.is_empty()


def test_a_message_goes_over_tls(plain):
    with secured(TransportType.Amqp, connection_verify=os.environ["RAILBUS_CA"]) as client:
        exchange(Queue(client, plain.name), b"within TLS")


def test_a_message_goes_over_websocket_within_tls(plain):
    with secured(TransportType.AmqpOverWebsocket, connection_verify=os.environ["RAILBUS_CA"]) as client:
        exchange(Queue(client, plain.name), b"within WebSocket within TLS")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_large_message_goes_over_tls(large, transport):
    with secured(transport, connection_verify=os.environ["RAILBUS_CA"]) as client:
        exchange(Queue(client, large.name), os.urandom(900 * 1024))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_that_does_not_trust_the_authority_does_not_connect(plain, transport):
    with secured(transport, retry_total=0) as client:
        with pytest.raises(ServiceBusError):
            Queue(client, plain.name).send(message())
    assert plain.is_empty()
