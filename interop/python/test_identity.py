"""Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
that `railbus identity env` prints, and the clients take its tokens. Nothing in the program names Railbus.
"""

import os

import pytest

from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientSecretCredential, DefaultAzureCredential
from azure.servicebus import ServiceBusClient, TransportType
from azure.servicebus.exceptions import ServiceBusError

from identity_support import OtherAudience, variables
from support import Queue, body_of, message

HOST, PORT = os.environ["RAILBUS_HOST"], os.environ["RAILBUS_PORT"]
CA = os.environ["RAILBUS_CA"]
TRANSPORTS = [TransportType.Amqp, TransportType.AmqpOverWebsocket]


@pytest.fixture
def credential(monkeypatch):
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    with DefaultAzureCredential() as credential:
        yield credential


def connect(credential, transport=TransportType.Amqp, **options):
    endpoint = f"sb://{HOST}:{PORT}"
    return ServiceBusClient(
        HOST, credential, connection_verify=CA, custom_endpoint_address=endpoint, transport_type=transport, **options
    )


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


def client_secret(secret):
    """The credential of a program whose authority is the broker."""
    return ClientSecretCredential(
        "any-tenant",
        "any-client",
        secret,
        authority=f"https://{HOST}:{PORT}",
        disable_instance_discovery=True,
        connection_verify=CA,
    )


def test_client_credentials_get_a_token(plain):
    with client_secret("SAS_KEY_VALUE") as credential, connect(credential) as client:
        Queue(client, plain.name).send(message(b"by client credentials"))
        [received] = plain.take()
        assert body_of(received) == b"by client credentials"


def test_a_wrong_secret_gets_no_token():
    with client_secret("WRONG_KEY_VALUE") as credential:
        with pytest.raises(ClientAuthenticationError, match="railbus identity env"):
            credential.get_token("https://servicebus.azure.net/.default")


def test_a_token_for_another_service_is_refused(plain, credential):
    other = OtherAudience(credential)
    with connect(other, retry_total=0) as client:
        with pytest.raises(ServiceBusError) as refusal:
            with client.get_queue_sender(plain.name) as sender:
                sender.send_messages(message())
    # The SDK tells a connection error, and the broker's answer as what is behind it.
    assert refusal.value.inner_exception.status_code == 401
    assert "InvalidAudience" in str(refusal.value.inner_exception)
    assert plain.is_empty()
