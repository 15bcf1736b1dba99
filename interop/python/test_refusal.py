"""Refusals: a wrong key and a queue that does not exist, each with the error the wire contract names.

For this SDK both are authentication errors, since put-token already fails (docs/spec/amqp.md#2.3).
"""

import pytest

from azure.servicebus.exceptions import ServiceBusAuthenticationError

from support import PREFIX, connect, connection_string, message

MISSING = f"{PREFIX}-missing"


def with_wrong_key():
    good = connection_string()
    bad = good.replace("SharedAccessKey=", "SharedAccessKey=wrong")
    assert bad != good
    return bad


def send(client, queue):
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(message())


def receive(client, queue):
    with client.get_queue_receiver(queue) as receiver:
        receiver.receive_messages(max_message_count=1, max_wait_time=1)


@pytest.mark.parametrize("operation", [send, receive])
def test_a_wrong_key_is_an_authentication_error(operation):
    with connect(with_wrong_key(), retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError) as raised:
            operation(client, f"{PREFIX}-plain")
        assert status_of(raised.value) == 401


@pytest.mark.parametrize("operation", [send, receive])
def test_a_missing_queue_is_refused_with_404(operation):
    with connect(retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError) as raised:
            operation(client, MISSING)
        assert status_of(raised.value) == 404


def test_a_refusal_leaves_other_connections_alone(plain):
    with connect(with_wrong_key(), retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError):
            send(client, plain.name)
    plain.send(message("still served"))
    assert len(plain.take()) == 1


def status_of(error):
    """The status code of the put-token answer, which the SDK keeps on the inner error."""
    return error.inner_exception.status_code
