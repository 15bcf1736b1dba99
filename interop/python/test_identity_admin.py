"""Administration without a connection string, with the token of a DefaultAzureCredential."""

import os

import pytest

from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.servicebus.management import ServiceBusAdministrationClient

from identity_support import OtherAudience, variables

NAMESPACE = f"{os.environ['RAILBUS_HOST']}:{os.environ['RAILBUS_PORT']}"
CA = os.environ["RAILBUS_CA"]


@pytest.fixture
def credential(monkeypatch):
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    with DefaultAzureCredential() as credential:
        yield credential


def administration(credential):
    return ServiceBusAdministrationClient(NAMESPACE, credential, connection_verify=CA)


def test_a_program_without_a_connection_string_administers(credential):
    with administration(credential) as client:
        name = "python-identity"
        client.create_queue(name)
        try:
            assert name in [queue.name for queue in client.list_queues()]
        finally:
            client.delete_queue(name)


def test_administration_with_a_token_for_another_service_is_refused(credential):
    with administration(OtherAudience(credential)) as client:
        with pytest.raises(HttpResponseError) as refusal:
            list(client.list_queues())
    assert refusal.value.status_code == 401
