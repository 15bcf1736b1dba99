"""Administration with tokens of a configured issuer. (docs/spec/amqp.md#2.8; docs/spec/admin.md#2.3)"""

import pytest

from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.management import ServiceBusAdministrationClient

from issuer_support import FILE_ISSUER, OPERATOR, WORKER, Key, bad_credentials, trusting
from test_issuer import BAD

SUB_CODES = {
    "IssuerNotFound": "40109",
    "InvalidSignature": "40103",
    "InvalidAudience": "40104",
    "ExpiredToken": "40106",
    "InvalidToken": "40100",
    "MalformedToken": "40105",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with trusting(tmp_path_factory.mktemp("issuer"), Key(FILE_ISSUER)) as world:
        yield world


def administration(world, credential):
    return ServiceBusAdministrationClient(f"localhost:{world.port}", credential, connection_verify=world.authority)


def names(world):
    with administration(world, world.provider.credential(OPERATOR)) as client:
        return [queue.name for queue in client.list_queues()]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_program_with_a_token_of_a_provider_administers(world, algorithm):
    with administration(world, world.provider.credential(OPERATOR, algorithm)) as client:
        client.create_queue("by-a-token", max_delivery_count=7)
        queue = client.get_queue("by-a-token")
        queue.max_delivery_count = 8
        client.update_queue(queue)
        assert client.get_queue("by-a-token").max_delivery_count == 8
        client.create_topic("events-by-a-token")
        client.create_subscription("events-by-a-token", "all")
        assert [it.name for it in client.list_subscriptions("events-by-a-token")] == ["all"]
        client.delete_topic("events-by-a-token")
        client.delete_queue("by-a-token")
    assert "by-a-token" not in names(world)


def test_a_token_without_manage_administers_nothing(world):
    before = names(world)
    with administration(world, world.provider.credential(WORKER)) as client:
        for operation in (
            lambda: client.create_queue("denied"),
            lambda: client.get_queue("orders"),
            lambda: client.delete_queue("orders"),
            lambda: list(client.list_queues()),
        ):
            with pytest.raises(ClientAuthenticationError) as refusal:
                operation()
            assert refusal.value.status_code == 401
            assert "Manage" in str(refusal.value)
    assert names(world) == before


@pytest.mark.parametrize("name", BAD)
def test_administration_with_a_token_that_is_not_good_is_refused(world, name):
    credential, text = bad_credentials(world)[name]
    before = names(world)
    with administration(world, credential) as client:
        for operation in (lambda: client.create_queue("denied"), lambda: client.delete_queue("orders")):
            with pytest.raises(ClientAuthenticationError) as refusal:
                operation()
            assert refusal.value.status_code == 401
            assert f"SubCode={SUB_CODES[text]}" in str(refusal.value)
            assert text in str(refusal.value)
    assert names(world) == before
