"""RabbitMQ's Python client, unchanged: management, publishing, consuming. (docs/spec/rabbitmq.md)"""

import os

import pytest
import requests
from rabbitmq_amqp_python_client import (
    AddressHelper,
    ClassicQueueSpecification,
    Delivery,
    Environment,
    QuorumQueueSpecification,
    QueueType,
    ValidationCodeException,
)
from rabbitmq_amqp_python_client.qpid.proton.utils import SendException

from support import connect, fresh, message, take, uri


def test_a_queue_is_declared_shown_purged_and_deleted(connection, management):
    name = fresh("a/b c")[:40].replace(" ", "-")
    management.declare_queue(QuorumQueueSpecification(name=name, message_ttl=None))
    management.declare_queue(QuorumQueueSpecification(name=name))
    publisher = connection.publisher(AddressHelper.queue_address(name))
    for _ in range(3):
        publisher.publish(message())
    info = management.queue_info(name)
    assert (info.name, info.message_count, info.queue_type) == (name, 3, QueueType.quorum)
    assert management.purge_queue(name) == 3
    publisher.close()
    management.delete_queue(name)
    with pytest.raises(ValidationCodeException):
        management.queue_info(name)


def test_a_queue_that_differs_is_a_conflict(management, queue):
    with pytest.raises(ValidationCodeException, match="PreconditionFailed"):
        management.declare_queue(ClassicQueueSpecification(name=queue))


def test_messages_come_as_they_were_published(connection, queue):
    publisher = connection.publisher(AddressHelper.queue_address(queue))
    sent = message(b"one", id="id-1", subject="subject", correlation_id="c", application_properties={"key": "value", "n": 7})
    publisher.publish(sent)
    (received,) = take(queue, "accept")
    assert (received.body, received.id, received.subject) == (b"one", "id-1", "subject")
    assert received.application_properties == {"key": "value", "n": 7}
    assert received.annotations["x-exchange"] == ""
    assert received.annotations["x-routing-key"] == queue


def test_a_message_says_where_it_goes(connection, queue):
    publisher = connection.publisher()
    one = message(address=AddressHelper.queue_address(queue))
    publisher.publish(one)
    lost = message(address=AddressHelper.queue_address("rabbitmq-nowhere"))
    with pytest.raises(SendException) as refused:
        publisher.publish(lost)
    assert refused.value.state == Delivery.RELEASED
    assert len(take(queue, "accept")) == 1


def test_what_is_requeued_comes_again_without_a_count(connection, queue):
    connection.publisher(AddressHelper.queue_address(queue)).publish(message())
    received = take(queue, "requeue", "requeue", "requeue", "accept")
    assert [one.delivery_count for one in received] == [0, 0, 0, 0]


def test_what_is_discarded_goes_to_the_dead_letter_exchange_or_nowhere(connection, management, queue):
    name = fresh("dying")
    specification = QuorumQueueSpecification(name=name, dead_letter_exchange="", dead_letter_routing_key=queue)
    management.declare_queue(specification)
    publisher = connection.publisher(AddressHelper.queue_address(name))
    publisher.publish(message(b"bad"))
    publisher.close()
    take(name, "discard")
    (dead,) = take(queue, "discard")
    assert dead.body == b"bad"
    assert dead.annotations["x-last-death-reason"] == "rejected"
    assert management.queue_info(queue).message_count == 0
    management.delete_queue(name)


def test_a_wrong_password_is_refused():
    environment = Environment(uri=uri(password="wrong"))
    with pytest.raises(Exception):
        connect(environment)


@pytest.fixture
def namespace():
    name = fresh("namespace")
    address = f"http://{os.environ['RAILBUS_HOST']}:{os.environ['RAILBUS_PORT']}/$railbus/namespaces/{name}"
    requests.put(address, timeout=10).raise_for_status()
    yield name
    requests.delete(address, timeout=10).raise_for_status()


def test_a_virtual_host_is_the_namespace_of_its_name(management, namespace):
    environment = Environment(uri=uri() + namespace)
    inside = connect(environment).management()
    inside.declare_queue(QuorumQueueSpecification(name="only-there"))
    assert inside.queue_info("only-there").message_count == 0
    with pytest.raises(ValidationCodeException):
        management.queue_info("only-there")
    environment.close()
