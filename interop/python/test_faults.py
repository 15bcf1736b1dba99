"""Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says.

Each effect happens once. `tries` is how often the broker has seen the operation, so 2 is one retry;
`messages` is how many are in the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.
"""

import json
import os
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from azure.servicebus.exceptions import ServiceBusError

from support import SDK_VERSION, connect, message, receive

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
TITLE = f"### Python: azure-servicebus {SDK_VERSION}"
HEAD = [
    "| Effect | `send` | tries | messages | `complete` | tries | messages |",
    "|---|---|---|---|---|---|---|",
]
REFUSALS = [
    "server-busy",
    "timeout",
    "quota-exceeded",
    "entity-disabled",
    "not-found",
    "unauthorized",
    "internal-error",
]
EFFECTS = [{"refuse": error} for error in REFUSALS]
EFFECTS += [{"disconnect": "before"}, {"disconnect": "after"}, {"delay-ms": 50}, "lose-lock", "deliver-again"]
OF_LOCKS = ["lose-lock", "deliver-again"]


def ask(broker, method, body=None):
    body = None if body is None else json.dumps(body).encode()
    request = Request(f"http://{broker.address}/$railbus/namespaces/default/faults", body, method=method)
    with urlopen(request) as answer:
        return json.load(answer)["faults"]


def inject(broker, effect, operation):
    rule = {"name": "once", "match": {"entity": "orders", "operations": [operation], "times": 1}, "effect": effect}
    ask(broker, "PUT", {"faults": [rule]})


def client_of(broker):
    """Its retries are the SDK's own, with less time between them."""
    return connect(broker.connection_string, retry_backoff_factor=0.05)


def outcome(operation):
    """The exception that a user of the SDK sees."""
    try:
        operation()
    except ServiceBusError as error:
        return f"`{type(error).__name__}`"
    return "nothing"


def result(broker, operation):
    shown = outcome(operation)
    tries = ask(broker, "GET")[0]["matched"]
    ask(broker, "DELETE")
    with client_of(broker) as client, client.get_queue_receiver("orders") as receiver:
        left = receiver.peek_messages(100)
    return [shown, str(tries), str(len(left))]


def empty(broker):
    """What was left of the queue goes with it."""
    request = Request(f"http://{broker.address}/$railbus/namespaces/default/reset", b"", method="POST")
    with urlopen(request) as answer:
        assert answer.status == 200


def of_send(broker, effect):
    with client_of(broker) as client, client.get_queue_sender("orders") as sender:
        inject(broker, effect, "send")
        return result(broker, lambda: sender.send_messages(message()))


def of_complete(broker, effect):
    with client_of(broker) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(message())
        with client.get_queue_receiver("orders") as receiver:
            (received,) = receive(receiver)
            inject(broker, effect, "complete")
            return result(broker, lambda: receiver.complete_message(received))


def row(broker, effect):
    sent = ["", "", ""] if effect in OF_LOCKS else of_send(broker, effect)
    empty(broker)
    completed = of_complete(broker, effect)
    empty(broker)
    shown = json.dumps(effect).replace('"', "").strip("{}") if isinstance(effect, dict) else effect
    return f"| {' | '.join([f'`{shown}`', *sent, *completed])} |"


def table():
    """The lines of this SDK's table in the document."""
    lines = DOCUMENT.read_text().splitlines()
    at = lines.index(TITLE) + 2
    return lines[at : at + len(HEAD) + len(EFFECTS)]


def test_each_effect_is_shown_as_the_document_says(broker):
    found = HEAD + [row(broker, effect) for effect in EFFECTS]
    if "RAILBUS_UPDATE_FAULTS" in os.environ:
        text = DOCUMENT.read_text()
        before = text.split(TITLE)[0]
        rest = "\n### " + text.split(TITLE)[1].split("\n### ", 1)[1] if "\n### " in text.split(TITLE)[1] else ""
        DOCUMENT.write_text(before + "\n".join([TITLE, "", *found, ""]) + rest)
    assert found == table()


def test_a_rule_that_is_wrong_is_refused_and_changes_nothing(broker):
    inject(broker, "deliver-again", "complete")
    before = ask(broker, "GET")
    rule = {"name": "other", "effect": "lose-lock"}
    for method, body in [
        ("POST", {**rule, "effect": "explode"}),
        ("POST", {**rule, "match": {"operations": ["fly"]}}),
        ("POST", {**rule, "match": {"operations": ["send"]}}),
        ("POST", {**rule, "match": {"probability": 2}}),
        ("POST", {**rule, "name": "once"}),
        ("PUT", {"faults": [rule, rule]}),
        ("PUT", {}),
    ]:
        with pytest.raises(HTTPError) as refused:
            ask(broker, method, body)
        assert refused.value.code == 400, body
        assert json.load(refused.value)["error"]
    assert ask(broker, "GET") == before
    assert ask(broker, "DELETE") == []
