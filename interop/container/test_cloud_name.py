"""A broker in the place of a namespace of the cloud: its ports, and its name by the hosts file."""

import os
import re
import signal
import ssl
import subprocess
import urllib.request

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

from test_image import log

HOST = "shop.servicebus.windows.net"


@pytest.fixture
def hosts(tmp_path):
    """The hosts file has the line that `railbus ca env` prints, for as long as a test runs."""
    file = tmp_path / "hosts"
    file.write_text(f"127.0.0.1 localhost {HOST}\n")
    subprocess.run(["mount", "--bind", file, "/etc/hosts"], check=True)
    yield
    subprocess.run(["umount", "/etc/hosts"], check=True)


@pytest.fixture
def broker(hosts, tmp_path):
    """The connection string of a broker, and the file of certificates to trust."""
    authority = ["--tls-dir", str(tmp_path / "tls"), "--as", HOST]
    program = os.environ["RAILBUS_BIN"]
    printed = subprocess.run([program, "ca", "env", *authority], check=True, capture_output=True, text=True).stdout
    assert f"# 127.0.0.1 {HOST}\n" in printed
    [bundle] = re.findall(r"^export SSL_CERT_FILE='(.*)'$", printed, re.MULTILINE)
    command = [program, "serve", "--ephemeral", *authority]
    with log() as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    ready = process.stdout.readline()
    yield re.search('connection-string="([^"]+)"', ready).group(1), bundle
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


def test_a_client_that_knows_no_port_finds_the_broker_by_the_name_of_its_namespace(broker):
    connection_string, bundle = broker
    assert connection_string.startswith(f"Endpoint=sb://{HOST}/;")
    assert "UseDevelopmentEmulator" not in connection_string
    administration = ServiceBusAdministrationClient.from_connection_string(connection_string, connection_verify=bundle)
    with administration:
        assert administration.get_namespace_properties().name == "shop"
        administration.create_queue("orders")
    with ServiceBusClient.from_connection_string(connection_string, connection_verify=bundle) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("by name"))
        with client.get_queue_receiver("orders") as receiver:
            [received] = receiver.receive_messages(max_wait_time=30)
            receiver.complete_message(received)
    assert str(received) == "by name"


def test_https_is_at_its_own_port(broker):
    _, bundle = broker
    context = ssl.create_default_context(cafile=bundle)
    with urllib.request.urlopen(f"https://{HOST}/health", context=context) as answer:
        assert answer.status == 200
