"""`azure.servicebus.aio`: programs with tokens of a configured issuer, by an asynchronous credential.

The provider and the broker that trusts it are those of the synchronous suite. (docs/spec/amqp.md#2.8)
"""

import pytest

from azure.servicebus import TransportType
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusAuthorizationError, ServiceBusConnectionError

from aio_support import receive
from issuer_support import OPERATOR, READER, WORKER, WRITER, Key, bad_credentials, trusting
from support import body_of, message

QUEUE = "orders"


@pytest.fixture
def world(tmp_path):
    with trusting(tmp_path, Key("in-the-file")) as world:
        yield world


class Asynchronous:
    """What this half of the SDK asks for tokens, which are those of a synchronous credential."""

    def __init__(self, credential):
        self.credential = credential

    async def get_token(self, *scopes, **options):
        return self.credential.get_token(*scopes, **options)


def client(world, credential):
    return ServiceBusClient(
        "localhost",
        Asynchronous(credential),
        connection_verify=world.authority,
        custom_endpoint_address=f"sb://localhost:{world.port}",
        # Beside an endpoint of its own, this SDK takes WebSocket unless it is told otherwise.
        transport_type=TransportType.Amqp,
        retry_total=0,
    )


async def send(client, queue=QUEUE, body=b"by a token"):
    async with client.get_queue_sender(queue) as sender:
        await sender.send_messages(message(body))


async def take(client, queue=QUEUE):
    async with client.get_queue_receiver(queue) as receiver:
        [received] = await receive(receiver)
        await receiver.renew_message_lock(received)
        await receiver.complete_message(received)
        return body_of(received)


async def peek(world):
    async with client(world, world.provider.credential(OPERATOR)) as operator:
        async with operator.get_queue_receiver(QUEUE) as receiver:
            return [(body_of(one), one.delivery_count) for one in await receiver.peek_messages(10)]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_programs_with_tokens_of_a_provider_send_and_receive(world, algorithm):
    async with client(world, world.provider.credential(WRITER, algorithm)) as writer:
        await send(writer)
    async with client(world, world.provider.credential(READER, algorithm)) as reader:
        assert await take(reader) == b"by a token"
    async with client(world, world.provider.credential(WORKER, algorithm)) as worker:
        await send(worker, "target")
        assert await take(worker, "target") == b"by a token"


async def test_a_token_has_no_right_beside_its_grants(world):
    async with client(world, world.provider.credential(OPERATOR)) as operator:
        await send(operator, body=b"untouched")
    for claims, operation, queue in (
        (WRITER, take, QUEUE),
        (READER, send, QUEUE),
        (WRITER, send, "target"),
        (READER, take, "target"),
        ({}, send, QUEUE),
    ):
        async with client(world, world.provider.credential(claims)) as refused:
            with pytest.raises(ServiceBusAuthorizationError):
                await operation(refused, queue)
    assert await peek(world) == [(b"untouched", 0)]


async def test_a_token_that_is_not_good_is_refused_and_nothing_changes(world):
    async with client(world, world.provider.credential(OPERATOR)) as operator:
        await send(operator, body=b"untouched")
    for credential, text in bad_credentials(world).values():
        async with client(world, credential) as refused:
            for operation in (send, take):
                with pytest.raises(ServiceBusConnectionError) as refusal:
                    await operation(refused)
                assert refusal.value.inner_exception.status_code == 401
                assert text in str(refusal.value.inner_exception)
    assert await peek(world) == [(b"untouched", 0)]
