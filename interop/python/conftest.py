"""The fixtures: one client for the run, and each queue of Config.json emptied before use."""

import pytest

from support import PREFIX, SDK_VERSION, Queue, connect
from virtual_clock import Broker

# The administration client of 7.14.3 does not take its own option to speak plain HTTP.
collect_ignore = ["test_admin.py", "test_http.py", "test_rules.py"] if SDK_VERSION == "7.14.3" else []


@pytest.fixture
def own_broker():
    """A broker for one test, whose queues are empty and whose clock the test moves."""
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def client():
    with connect() as client:
        yield client


@pytest.fixture(scope="session")
def queues():
    """The queues met so far, by name, with the links they keep open."""
    return {}


@pytest.fixture
def cleared(client, queues):
    def clear(suffix):
        name = f"{PREFIX}-{suffix}"
        queue = queues.setdefault(name, Queue(client, name))
        queue.clear()
        return queue

    return clear


@pytest.fixture
def plain(cleared):
    """Locks of one minute, three deliveries."""
    return cleared("plain")


@pytest.fixture
def shortlock(cleared):
    """Locks of five seconds."""
    return cleared("shortlock")


@pytest.fixture
def ttl(cleared):
    """Expired messages go to the dead-letter queue."""
    return cleared("ttl")


@pytest.fixture
def ttl_drop(cleared):
    """Every message expires after two seconds and is dropped."""
    return cleared("ttl-drop")


@pytest.fixture
def large(cleared):
    return cleared("large")


@pytest.fixture
def once(cleared):
    """Messages with an id of the last twenty seconds are accepted and dropped."""
    return cleared("once")


@pytest.fixture
def compete(cleared):
    return cleared("compete")
