"""Libraries over REST know neither a port nor a flag of the emulator: they are given the name of a namespace."""

import json
import subprocess
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

from cloud import CACHE, output

OWN = CACHE / "container"
LIBRARIES = {
    "azure-servicebus 0.21.1": ("REQUESTS_CA_BUNDLE", [OWN / "venv-rest/bin/python", "programs/rest.py"]),
    "azure-sb 0.11.2": ("NODE_EXTRA_CA_CERTS", ["node", "programs/rest.js"]),
}


class Library:
    """Its program, which is trusted by the variable for it alone."""

    def __init__(self, broker, variable, command):
        self.connection_string, trust = broker
        self.bundle = trust.variables["SSL_CERT_FILE"]
        self.variables = {"RAILBUS_CONNECTION_STRING": self.connection_string, "NODE_PATH": str(OWN / "node_modules")}
        self.environment = trust.environment(variable) | self.variables
        self.without_trust = trust.environment() | self.variables
        self.command = command

    def sees(self, name):
        return json.loads(output([*self.command, name], env=self.environment))


@pytest.fixture(params=LIBRARIES)
def library(request, broker):
    return Library(broker, *LIBRARIES[request.param])


def test_a_queue_is_created_listed_and_deleted_and_its_message_is_locked_given_back_and_completed(library):
    assert library.sees("queue") == {
        "created": [True, False],
        "listed": ["orders"],
        "settings": ["PT30S", 2],
        "message": ["by REST", "text/plain", "new", "red", 3],
        "deliveries": [1, 2],
        "left": 0,
        "gone": True,
    }


def test_a_subscription_receives_what_its_rule_selects(library):
    assert library.sees("topic") == {
        "rules": [["low", "price < 10"]],
        "subscriptions": ["cheap"],
        "received": "5",
        "left": 0,
    }


def test_a_missing_queue_a_name_that_can_not_be_and_a_wrong_key_are_told_by_their_status(library):
    assert library.sees("refused") == {"missing": 404, "name": 400, "key": 401}


def test_without_its_variable_a_library_does_not_trust_the_broker(library):
    refused = subprocess.run([*library.command, "receive"], env=library.without_trust, capture_output=True, text=True)
    assert refused.returncode != 0 and "certificate" in refused.stderr.lower()


def test_a_library_over_rest_and_an_sdk_over_amqp_share_a_queue(library):
    trusted = {"connection_verify": library.bundle}
    with ServiceBusAdministrationClient.from_connection_string(library.connection_string, **trusted) as administration:
        administration.create_queue("orders")
    with ServiceBusClient.from_connection_string(library.connection_string, **trusted) as client:
        library.sees("send")
        with client.get_queue_receiver("orders") as receiver:
            [received] = receiver.receive_messages(max_wait_time=30)
            receiver.complete_message(received)
        assert (str(received), received.subject) == ("by REST", "new")
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("by AMQP", subject="old"))
        assert library.sees("receive") == ["by AMQP", "old"]
