"""A broker in the place of a namespace of the cloud: its ports, and its name by the hosts file."""

import os
import re
import ssl
import subprocess
import sys

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

from cloud import CACHE, HOST, URL, needs, output

SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def certificates(file):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file)
    return set(context.get_ca_certs(binary_form=True))


def test_a_client_that_knows_no_port_finds_the_broker_by_the_name_of_its_namespace(broker):
    connection_string, trust = broker
    bundle = trust.variables["SSL_CERT_FILE"]
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


def test_the_bundle_holds_the_certificates_of_the_system_and_of_the_broker(broker):
    _, trust = broker
    system, own = certificates(SYSTEM_CERTIFICATES), certificates(trust.variables["NODE_EXTRA_CA_CERTS"])
    assert system and own and not system & own
    assert certificates(trust.variables["SSL_CERT_FILE"]) == system | own


PYTHON = [sys.executable, "-c"]
TOOLS = {
    "curl": ("CURL_CA_BUNDLE", ["curl", "--silent", "--show-error", "--fail", URL]),
    "requests": ("REQUESTS_CA_BUNDLE", [*PYTHON, f"import requests; requests.get('{URL}').raise_for_status()"]),
    "OpenSSL": ("SSL_CERT_FILE", [*PYTHON, f"import urllib.request; urllib.request.urlopen('{URL}')"]),
    "Node.js": ("NODE_EXTRA_CA_CERTS", ["node", "programs/https.js", URL]),
    "Go": ("SSL_CERT_FILE", ["go", "run", "programs/https.go", URL]),
    "Ruby": ("SSL_CERT_FILE", ["ruby", "programs/https.rb", URL]),
    "PHP": ("SSL_CERT_FILE", ["php", "programs/https.php", URL]),
    "railbus": ("RAILBUS_CA", [os.environ["RAILBUS_BIN"], "queue", "list"]),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_trusts_the_broker_by_the_variable_for_it(broker, tool):
    connection_string, trust = broker
    variable, command = TOOLS[tool]
    needs(command[0])
    string = {"RAILBUS_CONNECTION_STRING": connection_string}
    without = subprocess.run(command, env=trust.environment() | string, capture_output=True, text=True)
    assert without.returncode != 0 and "certificate" in without.stderr.lower()
    subprocess.run(command, env=trust.environment(variable) | string, check=True)


def test_the_curl_of_php_reads_no_variable_and_trusts_the_broker_by_a_setting(broker):
    _, trust = broker
    needs("php")
    program = ["programs/curl.php", URL]
    environment = trust.environment(*trust.variables)
    without = subprocess.run(["php", *program], env=environment, capture_output=True, text=True)
    assert without.returncode != 0 and "certificate" in without.stderr.lower()
    subprocess.run(["php", "-d", trust.setting_for_php(), *program], env=environment, check=True)


def test_java_trusts_the_broker_by_the_commands_for_it(broker):
    _, trust = broker
    needs("java")
    program = f"exec java programs/Https.java {URL}"
    settings = subprocess.run(["java", "-XshowSettings:properties", "-version"], capture_output=True, text=True)
    [home] = re.findall(r"java\.home = (.*)", settings.stderr)
    environment = trust.environment() | {"JAVA_HOME": home}
    without = subprocess.run(["sh", "-euc", program], env=environment, capture_output=True, text=True)
    assert without.returncode != 0 and "SSLHandshakeException" in without.stderr
    subprocess.run(["sh", "-euc", trust.commands_for_java() + program], env=environment, check=True)


def test_the_sdk_for_javascript_finds_the_broker_by_the_name_of_its_namespace(broker):
    connection_string, trust = broker
    modules = CACHE / "js/node_modules"
    needs("node")
    if not modules.exists():
        pytest.skip("the suite js is not set up")
    environment = trust.environment("NODE_EXTRA_CA_CERTS") | {
        "NODE_PATH": str(modules), "RAILBUS_CONNECTION_STRING": connection_string}
    assert output(["node", "programs/by-name.js"], env=environment) == "by name\n"


def test_the_sdk_for_go_finds_the_broker_by_the_name_of_its_namespace(broker):
    connection_string, trust = broker
    needs("go")
    environment = trust.environment("SSL_CERT_FILE") | {
        "RAILBUS_CONNECTION_STRING": connection_string, "GOPROXY": "off"}
    command = ["go", "run", os.path.abspath("programs/by_name.go")]
    assert output(command, env=environment, cwd="../go") == "by name\n"


def test_the_sdk_for_java_finds_the_broker_by_the_name_of_its_namespace(broker, tmp_path):
    connection_string, trust = broker
    if not (CACHE / "java/installed.xml").exists():
        pytest.skip("the suite java is not set up")
    # In a folder of its own, since the suite java may run at the same time.
    command = ["../java/run", "-Dtest=SendTest#aSentMessageArrivesWithItsBody", f"-Doutput={tmp_path}/target"]
    printed = output(command, env=of_suite(connection_string, trust, "NODE_EXTRA_CA_CERTS"))
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in printed, printed


def test_the_sdk_for_dotnet_finds_the_broker_by_the_name_of_its_namespace(broker):
    connection_string, trust = broker
    if not (CACHE / "dotnet/build/bin").exists():
        pytest.skip("the suite dotnet is not set up")
    command = ["../dotnet/run", "--filter", "FullyQualifiedName~Sending.ASentMessageArrivesWithItsBody"]
    printed = output(command, env=of_suite(connection_string, trust, "SSL_CERT_FILE"))
    assert re.search(r"Passed: +1\b", printed), printed


def of_suite(connection_string, trust, variable):
    """The environment of another suite's `run`: the authority is in the file that `variable` names, no port is told."""
    own = {name: value for name, value in trust.environment().items() if name not in ("RAILBUS_HOST", "RAILBUS_PORT")}
    return own | {"RAILBUS_CONNECTION_STRING": connection_string, "RAILBUS_CA": trust.variables[variable]}
