"""`azure.servicebus.aio` within TLS, with AMQP or WebSocket inside: nothing but the broker's own authority is trusted.

Without `UseDevelopmentEmulator=true` this SDK speaks TLS and takes no port from the connection string, so the port is said by
`custom_endpoint_address`.
"""

import os

import pytest

from azure.servicebus import TransportType
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from aio_support import receive
from support import body_of, message
from virtual_clock import Broker

TRANSPORTS = [TransportType.Amqp, TransportType.AmqpOverWebsocket]


@pytest.fixture
def place(tmp_path):
    """A broker, and the certificate of its authority."""
    with Broker(options=["--tls-dir", str(tmp_path / "tls")]) as broker:
        yield broker, str(tmp_path / "tls" / "ca.pem")


def secured(broker, transport, **options):
    return ServiceBusClient.from_connection_string(
        broker.connection_string.replace("UseDevelopmentEmulator=true;", ""),
        custom_endpoint_address="sb://localhost:" + broker.address.rpartition(":")[2],
        transport_type=transport,
        retry_total=0,
        **options,
    )


@pytest.mark.parametrize("size", [12, 200 * 1024])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_message_of_any_size_goes_over_tls(place, transport, size):
    broker, authority = place
    body = os.urandom(size)
    async with (
        secured(broker, transport, connection_verify=authority) as client,
        client.get_queue_sender("orders") as sender,
        client.get_queue_receiver("orders") as receiver,
    ):
        await sender.send_messages(message(body))
        [received] = await receive(receiver)
        assert body_of(received) == body
        await receiver.renew_message_lock(received)
        await receiver.complete_message(received)
        assert await receiver.peek_messages(1) == []


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_that_does_not_trust_the_authority_does_not_connect(place, transport):
    broker, authority = place
    async with secured(broker, transport) as client:
        with pytest.raises(ServiceBusError):
            async with client.get_queue_sender("orders") as sender:
                await sender.send_messages(message())
    async with secured(broker, transport, connection_verify=authority) as client:
        async with client.get_queue_receiver("orders") as receiver:
            assert await receiver.peek_messages(1) == []
