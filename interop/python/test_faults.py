"""Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says.

Each effect happens once, and to two operations in a row where the second one waits for the first:
then it is the second that counts. `tries` is how often the broker has seen it, so 2 is one retry;
`messages` is how many are in the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
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
EFFECTS += [{"detach": "detach-forced"}, {"end": "internal-error"}, {"close": "connection-forced"}, "expire-token"]
EFFECTS += [{"disconnect": "before"}, {"disconnect": "after"}, {"delay-ms": 50}]
# Of these the first operation takes its turn or the credit, and the second one waits.
OF_SECOND = [{"throttle-per-second": 20}, {"withhold-credit-ms": 50}]
OF_LOCKS = ["lose-lock", "deliver-again"]
# This SDK does not notice that its session has ended: a call waits as long as the connection lasts.
WAITS = [{"end": "internal-error"}]
EFFECTS += OF_SECOND + OF_LOCKS
OF_SENDS = [{"withhold-credit-ms": 50}]


def own(broker, method, path, body=None):
    body = None if body is None else json.dumps(body).encode()
    request = Request(f"http://{broker.address}/$railbus/{path}", body, method=method)
    with urlopen(request) as answer:
        return json.load(answer)


def ask(broker, method, body=None):
    return own(broker, method, "namespaces/default/faults", body)["faults"]


def inject(broker, effect, operation):
    match = {"entity": "orders", "operations": [operation], "times": count_of(effect)}
    ask(broker, "PUT", {"faults": [{"name": "once", "match": match, "effect": effect}]})


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


def outcome_at_end(broker, operation):
    """The same of a call that is not over before an operator closes its connection."""
    with ThreadPoolExecutor(1) as calls:
        call = calls.submit(outcome, operation)
        while not ask(broker, "GET")[0]["injected"]:
            assert not call.done(), "the rule is for this call"
        connections = own(broker, "GET", "connections")["connections"]
        assert not call.done(), "it waits for the end of its connection"
        for connection in connections:
            own(broker, "DELETE", f"connections/{connection['id']}")
        return call.result()


def result(broker, effect, operation, messages):
    """What is seen of the operation of the last of these messages."""
    *before, last = messages
    for one in before:
        operation(one)
    if effect in WAITS:
        shown = outcome_at_end(broker, lambda: operation(last))
    else:
        shown = outcome(lambda: operation(last))
    tries = ask(broker, "GET")[0]["matched"] - len(before)
    ask(broker, "DELETE")
    with client_of(broker) as client, client.get_queue_receiver("orders") as receiver:
        left = receiver.peek_messages(100)
    return shown, tries, len(left)


def count_of(effect):
    return 2 if effect in OF_SECOND else 1


def empty(broker):
    """What was left of the queue goes with it."""
    request = Request(f"http://{broker.address}/$railbus/namespaces/default/reset", b"", method="POST")
    with urlopen(request) as answer:
        assert answer.status == 200


def of_send(broker, effect):
    messages = [message() for _ in range(count_of(effect))]
    with client_of(broker) as client, client.get_queue_sender("orders") as sender:
        inject(broker, effect, "send")
        shown, tries, left = result(broker, effect, sender.send_messages, messages)
    return [shown, str(tries), str(left - len(messages) + 1)]


def of_complete(broker, effect):
    count = count_of(effect)
    with client_of(broker) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages([message() for _ in range(count)])
        with client.get_queue_receiver("orders") as receiver:
            received = receive(receiver, count)
            inject(broker, effect, "complete")
            shown, tries, left = result(broker, effect, receiver.complete_message, received)
    return [shown, str(tries), str(left)]


def row(broker, effect):
    sent = ["", "", ""] if effect in OF_LOCKS else of_send(broker, effect)
    empty(broker)
    completed = ["", "", ""] if effect in OF_SENDS else of_complete(broker, effect)
    empty(broker)
    shown = json.dumps(effect).replace('"', "").strip("{}") if isinstance(effect, dict) else effect
    return f"| {' | '.join([f'`{shown}`', *sent, *completed])} |"


def table_row(place):
    """The line of the document's table for the effect at this place, and where it is."""
    lines = DOCUMENT.read_text().splitlines()
    at = lines.index(TITLE) + 2
    assert lines[at : at + len(HEAD)] == HEAD
    at += len(HEAD) + place
    return at, lines


def write(place, found):
    """Puts a row in the place of the one for the same effect, or before the others."""
    at, lines = table_row(place)
    effect = found.split(" | ")[0]
    is_there = lines[at].split(" | ")[0] == effect
    lines[at : at + is_there] = [found]
    DOCUMENT.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("place", "effect"), list(enumerate(EFFECTS)))
def test_each_effect_is_shown_as_the_document_says(broker, place, effect):
    found = row(broker, effect)
    if "RAILBUS_UPDATE_FAULTS" in os.environ:
        write(place, found)
    at, lines = table_row(place)
    assert lines[at] == found


def test_the_table_has_no_other_effect():
    at, lines = table_row(len(EFFECTS))
    assert not lines[at].startswith("|")


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
