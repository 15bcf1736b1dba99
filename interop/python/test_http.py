"""Keys of a queue that are replaced, and messages by plain HTTP beside those of the SDK."""

import base64
import hashlib
import hmac
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import AccessRights, AuthorizationRule

from admin_support import administer, fresh
from support import body_of, connect, connection_string, message

HOST, PORT = os.environ["RAILBUS_HOST"], os.environ["RAILBUS_PORT"]
ROOT = ("RootManageSharedAccessKey", "SAS_KEY_VALUE")


@pytest.fixture
def admin():
    with administer() as admin:
        yield admin


@pytest.fixture
def queue(admin):
    name = fresh("http")
    admin.create_queue(name)
    yield name
    admin.delete_queue(name)


def token(path, rule=ROOT):
    """A shared access signature as the documentation of Service Bus makes it."""
    name, key = rule
    resource = urllib.parse.quote_plus(f"http://{HOST}:{PORT}/{path}")
    expiry = int(time.time()) + 600
    signed = hmac.new(key.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote_plus(base64.b64encode(signed))
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}"


def ask(method, path, body=b"", headers=None, rule=ROOT):
    """The status, the headers and the body of a response."""
    url = path if path.startswith("http") else f"http://{HOST}:{PORT}/{path}"
    entity = url.split("/", 3)[3].split("/messages")[0]
    headers = {"Authorization": token(entity, rule), "Content-Type": "text/plain", **(headers or {})}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def key_of(name, rights, primary, secondary):
    return AuthorizationRule(
        type="SharedAccessAuthorizationRule",
        claim_type="SharedAccessKey",
        claim_value="None",
        rights=rights,
        key_name=name,
        primary_key=primary,
        secondary_key=secondary,
    )


def with_rule(name, key):
    """The connection string of the suite, with another rule and its key."""
    parts = dict(part.split("=", 1) for part in connection_string().strip(";").split(";"))
    parts.update(SharedAccessKeyName=name, SharedAccessKey=key)
    return ";".join(f"{name}={value}" for name, value in parts.items())


def send(text, queue):
    with connect(text, retry_total=0) as client, client.get_queue_sender(queue) as sender:
        sender.send_messages(message())


def test_keys_of_a_queue_let_in_until_they_are_replaced(admin, queue):
    properties = admin.get_queue(queue)
    rule = key_of("app", [AccessRights.SEND], "the-first-key", "the-second-key")
    properties.authorization_rules = [rule]
    admin.update_queue(properties)
    for key in ("the-first-key", "the-second-key"):
        send(with_rule("app", key), queue)
        assert ask("POST", f"{queue}/messages", rule=("app", key))[0] == 201
    properties.authorization_rules = [key_of("app", [AccessRights.SEND], "the-second-key", "the-third-key")]
    admin.update_queue(properties)
    send(with_rule("app", "the-second-key"), queue)
    send(with_rule("app", "the-third-key"), queue)
    with pytest.raises(ServiceBusError):
        send(with_rule("app", "the-first-key"), queue)
    assert ask("POST", f"{queue}/messages", rule=("app", "the-first-key"))[0] == 401


def test_a_key_that_may_send_may_not_receive(admin, queue):
    properties = admin.get_queue(queue)
    properties.authorization_rules = [key_of("app", [AccessRights.SEND], "the-first-key", "the-second-key")]
    admin.update_queue(properties)
    assert ask("POST", f"{queue}/messages/head?timeout=0", rule=("app", "the-first-key"))[0] == 401
    assert ask("POST", "elsewhere/messages", rule=("app", "the-first-key"))[0] == 401


def test_the_sdk_receives_what_was_sent_by_http(queue):
    properties = {"MessageId": "an id", "Label": "a subject", "CorrelationId": "a correlation"}
    headers = {"BrokerProperties": json.dumps(properties), "Priority": '"high"', "Amount": "17"}
    assert ask("POST", f"{queue}/messages", b"by http", headers)[0] == 201
    with connect() as client, client.get_queue_receiver(queue) as receiver:
        (received,) = receiver.receive_messages(max_wait_time=30)
        assert body_of(received) == b"by http"
        assert (received.message_id, received.subject) == ("an id", "a subject")
        assert (received.correlation_id, received.content_type) == ("a correlation", "text/plain")
        assert received.application_properties == {b"priority": b"high", b"amount": 17}
        receiver.complete_message(received)


def test_what_the_sdk_sends_is_received_by_http(queue):
    with connect() as client, client.get_queue_sender(queue) as sender:
        sender.send_messages(message("by amqp", subject="a subject", application_properties={"color": "blue"}))
    status, headers, body = ask("POST", f"{queue}/messages/head?timeout=30")
    assert (status, body) == (201, b"by amqp")
    assert headers["color"] == '"blue"'
    assert json.loads(headers["BrokerProperties"])["Label"] == "a subject"
    location = headers["Location"]
    assert ask("POST", location)[0] == 200
    assert ask("PUT", location)[0] == 200
    status, headers, _ = ask("POST", f"{queue}/messages/head?timeout=30")
    assert (status, json.loads(headers["BrokerProperties"])["DeliveryCount"]) == (201, 2)
    assert ask("DELETE", headers["Location"])[0] == 200
    assert ask("DELETE", headers["Location"])[0] == 404
    assert ask("DELETE", f"{queue}/messages/head?timeout=0")[0] == 204


def test_an_unknown_name_that_begins_with_a_dollar_is_missing_to_whoever_may_manage(admin, queue):
    unknown = "$nservicebus-verification-queue"
    status, _, body = ask("GET", unknown)
    assert (status, b"Publicly Listed Services" in body) == (200, True)
    properties = admin.get_queue(queue)
    properties.authorization_rules = [key_of("app", [AccessRights.LISTEN], "the-first-key", "the-second-key")]
    admin.update_queue(properties)
    assert ask("GET", unknown, rule=("app", "the-first-key"))[0] == 401
    assert ask("GET", unknown, rule=("RootManageSharedAccessKey", "WRONG_KEY_VALUE"))[0] == 401


def test_a_name_that_is_refused_is_quoted_as_it_was_asked_for():
    for path in ("a//b", "a/../b", "a%20b", "$a?api-version=2021-05"):
        status, _, body = ask("PUT", path)
        sentence = f"'https://{HOST}:{PORT}/{path}' contains character(s) that is not allowed by Service Bus."
        assert (status, sentence in body.decode()) == (400, True), body
