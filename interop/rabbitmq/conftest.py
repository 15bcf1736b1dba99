"""The fixtures: a connection, its management and a queue for each test."""

import os

import pytest
from rabbitmq_amqp_python_client import Environment, QuorumQueueSpecification

from support import connect, fresh, uri

collect_ignore = [] if "RABBITMQ_PORT" in os.environ else ["test_recorded.py"]


@pytest.fixture
def connection():
    environment = Environment(uri=uri())
    yield connect(environment)
    environment.close()


@pytest.fixture
def management(connection):
    return connection.management()


@pytest.fixture
def queue():
    """Of a connection of its own, since the client's are told when a queue of their links is deleted."""
    environment = Environment(uri=uri())
    management = connect(environment).management()
    name = fresh("queue")
    management.declare_queue(QuorumQueueSpecification(name=name))
    yield name
    management.delete_queue(name)
    environment.close()
