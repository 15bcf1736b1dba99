"""The fixtures: one connection per test, and each queue of Config.json emptied before use."""

import pytest

from support import PREFIX, Queue, connect
from virtual_clock import Broker


@pytest.fixture
def connection():
    connection = connect()
    yield connection
    connection.close()


@pytest.fixture
def own_broker():
    """A broker for one test, whose queues are empty and whose clock stands still until the test moves it."""
    with Broker() as broker:
        broker.freeze()
        yield broker


@pytest.fixture
def own_connection(own_broker):
    connection = connect(address=own_broker.address)
    yield connection
    connection.close()


def cleared(connection, suffix):
    queue = Queue(connection, f"{PREFIX}-{suffix}")
    queue.clear()
    return queue


@pytest.fixture
def plain(connection):
    """Locks of one minute, three deliveries."""
    return cleared(connection, "plain")


@pytest.fixture
def shortlock(connection):
    """Locks of five seconds."""
    return cleared(connection, "shortlock")


@pytest.fixture
def ttl(connection):
    """Expired messages go to the dead-letter queue."""
    return cleared(connection, "ttl")


@pytest.fixture
def ttl_drop(connection):
    """Every message expires after two seconds and is dropped."""
    return cleared(connection, "ttl-drop")


@pytest.fixture
def large(connection):
    return cleared(connection, "large")


@pytest.fixture
def compete(connection):
    return cleared(connection, "compete")


@pytest.fixture
def forever(connection):
    """No time to live at all, so that the broker has nothing to write into a message."""
    return cleared(connection, "forever")
