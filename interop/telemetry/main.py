"""One trace: a sender in Python, a topic, a rule, a subscription that forwards, a receiver in JavaScript.

The sender's SDK makes the trace and writes it on the message. The broker's spans are in that trace, the receiver finds
the properties as they were sent, and the dead-lettering is an event of the last span.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from azure.core.settings import settings
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from collector import Collector

HERE = Path(__file__).resolve().parent
READY = re.compile(r'^railbus ready listen=(\S+) connection-string="([^"]+)"$')
CONTEXTS = ("traceparent", "Diagnostic-Id")


def start(collector, directory):
    command = [
        os.environ["RAILBUS_BIN"],
        "serve",
        "--ephemeral",
        *("--listen", "127.0.0.1:0"),
        *("--config", str(HERE / "railbus.toml")),
    ]
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "10"}
    log = open(Path(directory) / "broker.log", "ab")
    broker = subprocess.Popen(command, cwd=directory, env=os.environ | variables, stdout=subprocess.PIPE, stderr=log)
    ready = READY.match(broker.stdout.readline().decode().strip())
    assert ready, "the broker did not become ready"
    return broker, ready[2]


def send(connection_string):
    """Sends a message within a span of its own. Returns the trace, and the contexts written on the message."""
    settings.tracing_implementation = "opentelemetry"
    trace.set_tracer_provider(TracerProvider())
    message = ServiceBusMessage(b"hello", application_properties={"amount": 500})
    with trace.get_tracer("shop").start_as_current_span("order") as span:
        with ServiceBusClient.from_connection_string(connection_string) as client:
            with client.get_topic_sender("events") as sender:
                sender.send_messages(message)
    properties = {key if isinstance(key, str) else key.decode(): value for key, value in message.application_properties.items()}
    contexts = {key: text(properties[key]) for key in CONTEXTS if key in properties}
    assert contexts, f"the SDK writes no context: {properties}"
    return f"{span.get_span_context().trace_id:032x}", contexts


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def attributes(of):
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in of.attributes}


def check(spans, trace_id, contexts):
    assert {span.trace_id.hex() for span in spans} == {trace_id}, spans
    parent = next(iter(contexts.values())).split("-")[2]
    assert {span.parent_span_id.hex() for span in spans} == {parent}, spans
    names = [span.name for span in spans]
    assert names == ["send events", "receive final", "dead_letter final"], names
    assert all(attributes(span)["messaging.system"] == "servicebus" for span in spans)
    (event,) = spans[2].events
    assert event.name == "dead-letter"
    assert attributes(event) == {"reason": "spoilt", "description": "it smells"}, event


def main():
    collector = Collector()
    with tempfile.TemporaryDirectory() as directory:
        broker, connection_string = start(collector, directory)
        try:
            trace_id, contexts = send(connection_string)
            command = ["node", str(HERE / "receiver.js"), connection_string, "final"]
            received = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            assert received == {"amount": 500} | contexts, f"{received} is not what was sent: {contexts}"
            check(collector.wait_for(3), trace_id, contexts)
        finally:
            broker.send_signal(signal.SIGTERM)
            code = broker.wait(60)
    assert code == 0, f"the broker ended with {code}"
    print("one trace from Python to JavaScript\n1 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
