"""Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
that `railbus identity env` prints, and the clients take its tokens. Nothing in the program names Railbus.
"""

import os
import re
import subprocess

import pytest

from azure.core.exceptions import HttpResponseError
from azure.identity import ClientSecretCredential, DefaultAzureCredential
from azure.servicebus import ServiceBusClient, TransportType
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import ServiceBusAdministrationClient

from support import Queue, body_of, message

HOST, PORT = os.environ["RAILBUS_HOST"], os.environ["RAILBUS_PORT"]
CA = os.environ["RAILBUS_CA"]
TRANSPORTS = [TransportType.Amqp, TransportType.AmqpOverWebsocket]


class OtherAudience:
    """A credential whose tokens are for another service."""

    def __init__(self, credential):
        self.credential = credential

    def get_token(self, *_scopes, **options):
        return self.credential.get_token("https://vault.azure.net/.default", **options)


@pytest.fixture
def credential(monkeypatch):
    command = [os.environ["RAILBUS_BIN"], "identity", "env", "--listen", f"127.0.0.1:{PORT}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    variables = re.findall(r"^export (\w+)=(\S+)$", printed, re.MULTILINE)
    assert {name for name, _ in variables} == {"IDENTITY_ENDPOINT", "IDENTITY_HEADER"}
    for name, value in variables:
        monkeypatch.setenv(name, value)
    with DefaultAzureCredential() as credential:
        yield credential


def connect(credential, transport=TransportType.Amqp, **options):
    endpoint = f"sb://{HOST}:{PORT}"
    return ServiceBusClient(
        HOST, credential, connection_verify=CA, custom_endpoint_address=endpoint, transport_type=transport, **options
    )


def administration(credential):
    return ServiceBusAdministrationClient(f"{HOST}:{PORT}", credential, connection_verify=CA)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_program_without_a_connection_string_sends_and_receives(plain, credential, transport):
    with connect(credential, transport) as client:
        queue = Queue(client, plain.name)
        queue.send(message(b"without a key"))
        with queue.receiver() as receiver:
            [received] = receiver.receive_messages(max_wait_time=30)
            assert body_of(received) == b"without a key"
            receiver.renew_message_lock(received)
            receiver.complete_message(received)
        assert queue.is_empty()


def test_a_program_without_a_connection_string_administers(credential):
    with administration(credential) as client:
        name = "python-identity"
        client.create_queue(name, forward_to=None)
        try:
            assert name in [queue.name for queue in client.list_queues()]
        finally:
            client.delete_queue(name)


def test_client_credentials_get_a_token(plain):
    credential = ClientSecretCredential(
        "any-tenant",
        "any-client",
        "SAS_KEY_VALUE",
        authority=f"https://{HOST}:{PORT}",
        disable_instance_discovery=True,
        connection_verify=CA,
    )
    with credential, connect(credential) as client:
        Queue(client, plain.name).send(message(b"by client credentials"))


def test_a_token_for_another_service_is_refused(plain, credential):
    other = OtherAudience(credential)
    with connect(other, retry_total=0) as client:
        with pytest.raises(ServiceBusError) as refusal:
            with client.get_queue_sender(plain.name) as sender:
                sender.send_messages(message())
    # The SDK tells a connection error, and the broker's answer as what is behind it.
    assert refusal.value.inner_exception.status_code == 401
    assert "InvalidAudience" in str(refusal.value.inner_exception)
    with administration(other) as client:
        with pytest.raises(HttpResponseError) as refusal:
            client.get_queue(plain.name)
    assert refusal.value.status_code == 401
    assert plain.is_empty()
