"""Programs with tokens of a configured issuer: a provider of OpenID Connect, as in production.

The provider stands beside the broker (see `issuer_support`); the SDK asks an ordinary credential for its tokens. A
token has the rights that the broker's grants give to its claims. What is refused leaves the queue as it was.
(docs/spec/amqp.md#2.8)
"""

import pytest

from azure.servicebus import TransportType
from azure.servicebus.exceptions import (
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusError,
)

from issuer_support import (
    FILE_ISSUER,
    OPERATOR,
    READER,
    WORKER,
    WRITER,
    Credential,
    Key,
    bad_credentials,
    trusting,
)
from support import Queue, body_of, connect, eventually, message

QUEUE = "orders"


@pytest.fixture(scope="module")
def first_key():
    """The key that the file has at first."""
    return Key("in-the-file")


@pytest.fixture(scope="module")
def world(tmp_path_factory, first_key):
    with trusting(tmp_path_factory.mktemp("issuer"), first_key) as world:
        yield world


@pytest.fixture(scope="module")
def operated(world):
    """The queue as a client sees it that may do everything, and whose links stay open."""
    with world.client(world.provider.credential(OPERATOR)) as client:
        yield Queue(client, QUEUE)


@pytest.fixture
def orders(operated):
    operated.clear()
    return operated


def send(client, queue=QUEUE):
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(message(b"by a token"))


def receive(client, queue=QUEUE):
    with client.get_queue_receiver(queue) as receiver:
        receiver.receive_messages(max_wait_time=5)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("transport", [TransportType.Amqp, TransportType.AmqpOverWebsocket])
def test_programs_with_tokens_of_a_provider_send_and_receive(world, orders, algorithm, transport):
    writer, reader = (world.provider.credential(claims, algorithm) for claims in (WRITER, READER))
    with world.client(writer, transport_type=transport) as client:
        send(client)
    with world.client(reader, transport_type=transport) as client:
        with client.get_queue_receiver(QUEUE) as receiver:
            [received] = receiver.receive_messages(max_wait_time=30)
            assert body_of(received) == b"by a token"
            receiver.renew_message_lock(received)
            receiver.complete_message(received)
    assert orders.is_empty()
    assert world.provider.paths[:2] == ["/tenant/.well-known/openid-configuration", "/tenant/keys"]


@pytest.mark.parametrize(
    "claims, operation, queue",
    [
        (WRITER, receive, QUEUE),
        (READER, send, QUEUE),
        (WRITER, send, "target"),
        (READER, receive, "target"),
        ({"roles": ["Azure Service Bus Data Owner"]}, send, QUEUE),
        ({"roles": ["worker"]}, receive, QUEUE),
        ({}, send, QUEUE),
    ],
    ids=[
        "a writer does not receive",
        "a reader does not send",
        "a writer elsewhere",
        "a reader elsewhere",
        "a role of Azure's beside other grants",
        "a subject as a role",
        "nothing claimed",
    ],
)
def test_a_token_has_no_right_beside_its_grants(world, orders, claims, operation, queue):
    orders.send(message(b"untouched"))
    with world.client(world.provider.credential(claims), retry_total=0) as client:
        with pytest.raises(ServiceBusAuthorizationError):
            operation(client, queue)
    [left] = orders.peek()
    assert body_of(left) == b"untouched"
    assert left.delivery_count == 0


def test_a_subject_has_its_rights_in_every_queue(world, orders):
    with world.client(world.provider.credential(WORKER)) as client:
        for queue in (QUEUE, "target"):
            send(client, queue)
            with client.get_queue_receiver(queue) as receiver:
                [received] = receiver.receive_messages(max_wait_time=30)
                assert body_of(received) == b"by a token"
                receiver.complete_message(received)


BAD = [
    "unknown issuer",
    "another key of that name",
    "key of another issuer",
    "wrong audience",
    "expired",
    "not yet",
    "unsigned",
    "no JWT",
]


@pytest.mark.parametrize("name", BAD)
def test_a_token_that_is_not_good_is_refused_and_nothing_changes(world, orders, name):
    credential, text = bad_credentials(world)[name]
    orders.send(message(b"untouched"))
    with world.client(credential, retry_total=0) as client:
        for operation in (send, receive):
            with pytest.raises(ServiceBusConnectionError) as refusal:
                operation(client)
            # To this SDK it is a connection error, and the broker's answer is what is behind it.
            assert refusal.value.inner_exception.status_code == 401
            assert text in str(refusal.value.inner_exception)
    [left] = orders.peek()
    assert body_of(left) == b"untouched"
    assert left.delivery_count == 0


def test_keys_are_rotated_without_a_restart(world, orders, first_key):
    second_key = Key("its-successor")
    # This issuer has the usual audience and the usual grants.
    claims = {"roles": ["Azure Service Bus Data Sender"], "aud": "https://servicebus.azure.net"}
    old, new = (Credential(key, FILE_ISSUER, claims) for key in (first_key, second_key))

    def refusal(credential):
        """Why a send is refused; nothing if it is not."""
        try:
            with world.client(credential, retry_total=0) as client:
                send(client)
            return ""
        except ServiceBusError as refused:
            return str(refused.inner_exception)

    assert refusal(old) == ""
    assert "InvalidSignature" in refusal(new)
    with world.client(world.provider.credential(WORKER)) as bystander:
        with bystander.get_queue_sender(QUEUE) as sender:
            world.write_keys(first_key, second_key)
            eventually(lambda: refusal(new) == "", "the new key")
            assert refusal(old) == ""
            world.write_keys(second_key)
            # A link that stands when its key is withdrawn is detached, which is another refusal.
            eventually(lambda: "InvalidSignature" in refusal(old), "the end of the old key")
            assert refusal(new) == ""
            # Links with tokens of other keys are kept.
            sender.send_messages(message())


def test_the_development_key_is_not_valid_beside_an_issuer(world, orders):
    key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    assert "SharedAccessKey" not in world.broker.connection_string
    text = world.broker.connection_string.replace("UseDevelopmentEmulator", f"{key}UseDevelopmentEmulator")
    with connect(text, retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError) as refusal:
            send(client)
    assert refusal.value.inner_exception.status_code == 401
    assert orders.is_empty()
