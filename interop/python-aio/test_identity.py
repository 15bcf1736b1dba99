"""`azure.servicebus.aio` without a connection string: the asynchronous DefaultAzureCredential finds the broker's development
issuer by the variables that `railbus identity env` prints, as the synchronous one does.
"""

import pytest

from azure.identity.aio import DefaultAzureCredential
from azure.servicebus import TransportType
from azure.servicebus.aio import ServiceBusClient

from aio_support import receive
from identity_support import variables
from support import body_of, message
from virtual_clock import Broker

TRANSPORTS = [TransportType.Amqp, TransportType.AmqpOverWebsocket]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the program connects: endpoint and authority of a broker that its environment leads to."""
    authority = tmp_path / "tls"
    with Broker(options=["--tls-dir", str(authority)]) as broker:
        port = broker.address.rpartition(":")[2]
        for name, value in variables(port).items():
            monkeypatch.setenv(name, value)
        yield f"sb://localhost:{port}", str(authority / "ca.pem")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_program_without_a_connection_string_sends_and_receives(place, transport):
    endpoint, authority = place
    options = {"connection_verify": authority, "custom_endpoint_address": endpoint, "transport_type": transport}
    async with (
        DefaultAzureCredential() as credential,
        ServiceBusClient("localhost", credential, **options) as client,
        client.get_queue_sender("orders") as sender,
        client.get_queue_receiver("orders") as receiver,
    ):
        await sender.send_messages(message(b"without a key"))
        [received] = await receive(receiver)
        assert body_of(received) == b"without a key"
        await receiver.renew_message_lock(received)
        await receiver.complete_message(received)
        assert await receiver.peek_messages(1) == []
