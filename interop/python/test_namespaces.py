"""Namespaces: tests that run beside each other on one broker, each in a namespace of its own.

The SDK knows only `localhost`, so the name of the key chooses.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from azure.servicebus.exceptions import ServiceBusAuthenticationError

from support import body_of, connect, message, receive

NAMESPACES = 20


def ask(broker, method, path, body=None):
    body = None if body is None else json.dumps(body).encode()
    request = Request(f"http://{broker.address}/$railbus/namespaces{path}", body, method=method)
    with urlopen(request) as answer:
        return json.load(answer)


def create(broker, name, **options):
    return ask(broker, "PUT", f"/{name}", {"like": "default", **options})["connection-string"]


def send(text, body):
    with connect(text) as client, client.get_queue_sender("orders") as sender:
        sender.send_messages(message(body))


def refusal(text):
    """The status code of the refused token."""
    with connect(text, retry_total=0) as client, pytest.raises(ServiceBusAuthenticationError) as raised:
        client.get_queue_sender("orders").__enter__()
    return raised.value.inner_exception.status_code


def test_tests_beside_each_other_see_their_own_messages(broker):
    names = [f"beside-{number}" for number in range(NAMESPACES)]

    def run(name):
        with connect(create(broker, name)) as client:
            with client.get_queue_sender("orders") as sender:
                sender.send_messages([message(f"{name} {number}") for number in range(10)])
            with client.get_queue_receiver("orders") as receiver:
                found = []
                while len(found) < 10:
                    for received in receive(receiver):
                        found.append(body_of(received).decode())
                        receiver.complete_message(received)
                assert receiver.peek_messages(1) == []
        return found

    with ThreadPoolExecutor(NAMESPACES) as pool:
        results = dict(zip(names, pool.map(run, names)))
    for name in names:
        assert results[name] == [f"{name} {number}" for number in range(10)]
        assert ask(broker, "DELETE", f"/{name}") == {}


def test_a_reset_takes_messages_away_and_leaves_queues(broker):
    text = create(broker, "reset")
    other = create(broker, "reset-other")
    send(text, "gone")
    send(other, "kept")
    assert ask(broker, "POST", "/reset/reset") == {}
    with connect(text) as client, client.get_queue_receiver("orders") as receiver:
        assert receiver.peek_messages(1) == []
    with connect(other) as client, client.get_queue_receiver("orders") as receiver:
        (kept,) = receive(receiver)
        assert body_of(kept) == b"kept"


def test_entities_and_keys_of_another_namespace_are_not_there(broker):
    text = create(broker, "inside")
    ask(broker, "PUT", "/empty")
    empty = ask(broker, "PUT", "/empty-too")["connection-string"]
    # This SDK learns of a missing entity when it puts its token.
    assert refusal(empty) == 404
    key = dict(part.split("=", 1) for part in text.strip(";").split(";"))["SharedAccessKey"]
    stolen = empty.replace(empty.split("SharedAccessKey=")[1].split(";")[0], key)
    assert refusal(stolen) == 401


def test_bad_requests_change_nothing(broker):
    create(broker, "there")
    before = ask(broker, "GET", "")
    for method, path, body, status in [
        ("PUT", "/a%2Fb", {}, 400),
        ("PUT", "/A", {}, 400),
        ("PUT", "/new", {"like": "nobody"}, 404),
        ("PUT", "/there", {"like": "default"}, 409),
        ("PUT", "/new", {"size": 1}, 400),
        ("PUT", "/new", {"hosts": ["there.localhost"]}, 400),
        ("PUT", "/new", {"hosts": ["localhost"]}, 400),
        ("DELETE", "/nobody", None, 404),
        ("DELETE", "/default", None, 400),
        ("POST", "/nobody/reset", {}, 404),
    ]:
        with pytest.raises(HTTPError) as refused:
            ask(broker, method, path, body)
        assert refused.value.code == status, (method, path, body)
        assert json.load(refused.value)["error"]
    assert ask(broker, "GET", "") == before
