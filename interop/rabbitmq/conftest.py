"""The fixtures: a connection, its management and a queue for each test."""

import pytest
from rabbitmq_amqp_python_client import Environment, QuorumQueueSpecification

from support import connect, fresh, uri


@pytest.fixture
def connection():
    environment = Environment(uri=uri())
    yield connect(environment)
    environment.close()


@pytest.fixture
def management(connection):
    return connection.management()


@pytest.fixture
def queue(management):
    name = fresh("queue")
    management.declare_queue(QuorumQueueSpecification(name=name, delivery_limit=1))
    yield name
    management.delete_queue(name)
