"""Dynamic nodes: a receiver's own queue, by whose address another connection answers."""

import uuid

import pytest

from proton import Delivery, symbol
from proton.reactor import DynamicNodeProperties, LinkOption
from proton.utils import LinkDetached

from support import Queue, connect, message

PREFIX = "railbus.temporary."


def replies(connection, options=None):
    """A receiver of a queue of its own, and the address of that."""
    receiver = connection.create_receiver(None, dynamic=True, credit=10, name=str(uuid.uuid4()), options=options)
    return receiver, receiver.link.remote_source.address


@pytest.fixture
def other():
    connection = connect()
    yield connection
    connection.close()


def test_another_connection_answers_by_the_address(connection, other, plain):
    receiver, address = replies(connection)
    assert address.startswith(PREFIX)
    plain.send(message("question", reply_to=address))
    (request,) = Queue(other, plain.name).take()
    (delivery,) = Queue(other, request.reply_to).send(message("answer", correlation_id=request.id))
    assert delivery.remote_state == Delivery.ACCEPTED
    assert receiver.receive().body == "answer"
    receiver.accept()


def test_a_node_goes_with_the_link_that_made_it(connection, other):
    receiver, address = replies(connection)
    sender = Queue(other, address).sender()
    sender.send(message())
    receiver.close()
    with pytest.raises(LinkDetached) as caught:
        other.wait(lambda: False, msg="the detach", timeout=5)
    assert caught.value.condition == "amqp:resource-deleted"
    with pytest.raises(LinkDetached) as caught:
        Queue(other, address).sender()
    assert caught.value.condition == "amqp:not-found"


def test_a_node_goes_with_its_connection(other):
    connection = connect()
    _, address = replies(connection)
    Queue(other, address).sender().close()
    connection.close()
    with pytest.raises(LinkDetached) as caught:
        Queue(other, address).sender()
    assert caught.value.condition == "amqp:not-found"


def test_an_unknown_lifetime_policy_is_refused(connection):
    properties = DynamicNodeProperties({symbol("lifetime-policy"): symbol("for-ever")})
    assert isinstance(properties, LinkOption)
    with pytest.raises(LinkDetached) as caught:
        replies(connection, options=properties)
    assert caught.value.condition == "amqp:invalid-field"


def test_many_nodes_come_and_go(connection):
    addresses = set()
    for _ in range(200):
        receiver, address = replies(connection)
        addresses.add(address)
        receiver.close()
    assert len(addresses) == 200
