"""The image in the place of the Service Bus emulator's."""

import json
import os
import signal
import subprocess
import urllib.request
from contextlib import contextmanager

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from image import BASE_LIBRARIES, CONFIG, DOCKERFILE, base_name
from logs import log

# What people's compose files set for the emulator.
EMULATOR = {"ACCEPT_EULA": "Y", "SQL_SERVER": "mssql", "MSSQL_SA_PASSWORD": "Not-a-Secret-1", "SQL_WAIT_INTERVAL": "0"}
CONNECTION_STRING = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    "UseDevelopmentEmulator=true;"
)
MOUNTED = {"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [{"Name": "orders"}],
                                          "Topics": [{"Name": "events", "Subscriptions": [{"Name": "all"}]}]}],
                          "Logging": {"Type": "Console"}}}
MIB = 1 << 20


@contextmanager
def running(image, **variables):
    """The image's own command, until it is asked to stop as an engine does."""
    environment = {**image.environment, **EMULATOR, "RUST_LOG": "trace", **variables}
    command = image.inside(image.entrypoint + image.command)
    with log() as stderr:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout.readline().startswith("railbus ready ")
        yield environment
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def mount(image, config):
    (image.root / CONFIG.lstrip("/")).write_text(json.dumps(config))


def health_check(image, environment):
    return subprocess.run(image.inside(image.health_check), env=environment, capture_output=True, text=True)


def test_the_dockerfile_has_no_findings():
    subprocess.run([os.path.join(os.path.dirname(os.sys.executable), "hadolint"), DOCKERFILE], check=True)


def test_the_program_needs_only_what_the_base_image_has(image):
    assert {base_name(library) for library in image.libraries} <= BASE_LIBRARIES


def test_the_image_adds_little_to_its_base(image, record_property):
    size = image.added_bytes()
    print(f"the image adds {size / MIB:.1f} MiB to its base")
    record_property("bytes", size)
    assert size < 64 * MIB


def test_an_sdk_uses_what_the_mounted_file_declares(image):
    mount(image, MOUNTED)
    with running(image), ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("a"))
        with client.get_queue_receiver("orders", max_wait_time=10) as receiver:
            received = receiver.receive_messages()[0]
            assert str(received) == "a"
            receiver.complete_message(received)
        with client.get_topic_sender("events") as sender:
            sender.send_messages(ServiceBusMessage("b"))
        with client.get_subscription_receiver("events", "all", max_wait_time=10) as receiver:
            assert str(receiver.receive_messages()[0]) == "b"


def test_messages_survive_the_container(image):
    mount(image, MOUNTED)
    with running(image), ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("kept"))
    with running(image), ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        with client.get_queue_receiver("orders", max_wait_time=10) as receiver:
            assert str(receiver.receive_messages()[0]) == "kept"


@pytest.mark.parametrize("port", [5300, 5672, 8080])
def test_health_is_told_on_every_port(image, port):
    with running(image, EMULATOR_HTTP_PORT="8080"):
        with urllib.request.urlopen(f"http://localhost:{port}/health") as answer:
            assert json.load(answer) == {"status": "healthy", "message": "Service is healthy."}


def test_the_health_check_tells_a_broker_that_runs_from_one_that_does_not(image):
    with running(image) as environment:
        assert health_check(image, environment).returncode == 0
    assert health_check(image, environment).returncode == 1


def test_another_path_for_the_file_is_taken(image):
    image.put(image.root / CONFIG.lstrip("/"), "/elsewhere/Config.json")
    (image.root / CONFIG.lstrip("/")).unlink()
    with running(image, CONFIG_PATH="/elsewhere/Config.json"):
        pass


def test_the_ports_are_those_of_the_emulator(image):
    listening = {int(address.rsplit(":", 1)[1]) for address in image.environment["RAILBUS_LISTEN"].split(",")}
    assert listening == image.ports >= {5672, 5300}
