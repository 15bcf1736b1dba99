"""The fixtures: entities of a test's own, made by the SDK's administration client and removed at the end."""

import importlib.util
import uuid

import pytest
from azure.servicebus.management import CorrelationRuleFilter

from namespace import Namespace
from support import administer, connect

AIRFLOW = ["test_airflow.py"]
OTHERS = ["test_kombu.py", "test_celery.py", "test_faststream.py"]

RED = CorrelationRuleFilter(properties={"colour": "red"})

# Each virtual environment has its own frameworks.
collect_ignore = AIRFLOW if importlib.util.find_spec("airflow") is None else OTHERS


@pytest.fixture(scope="session")
def namespace():
    """A broker on the ports of the cloud."""
    with Namespace() as namespace:
        yield namespace


@pytest.fixture(scope="session")
def administration():
    with administer() as administration:
        yield administration


@pytest.fixture(scope="session")
def client():
    with connect() as client:
        yield client


@pytest.fixture
def fresh():
    """Makes a name that no other test or run has used."""
    return lambda what: f"{what}-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def queue(administration, fresh):
    """A queue that gives a message three times."""
    name = fresh("queue")
    administration.create_queue(name, lock_duration="PT30S", max_delivery_count=3)
    yield name
    administration.delete_queue(name)


@pytest.fixture
def topic(administration, fresh):
    """A topic with the subscriptions `all` and `red`, which takes messages whose property `colour` is red."""
    name = fresh("topic")
    administration.create_topic(name)
    administration.create_subscription(name, "all", max_delivery_count=3)
    administration.create_subscription(name, "red", max_delivery_count=3)
    administration.delete_rule(name, "red", "$Default")
    administration.create_rule(name, "red", "by-colour", filter=RED)
    yield name
    administration.delete_topic(name)
