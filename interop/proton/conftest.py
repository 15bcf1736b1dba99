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


def emptied(suffix):
    """A fixture: the queue of that name, without messages."""

    @pytest.fixture
    def queue(connection):
        queue = Queue(connection, f"{PREFIX}-{suffix}")
        queue.clear()
        return queue

    return queue


plain = emptied("plain")  # Locks of one minute, three deliveries.
shortlock = emptied("shortlock")  # Locks of five seconds.
ttl = emptied("ttl")  # Expired messages go to the dead-letter queue.
ttl_drop = emptied("ttl-drop")  # Every message expires after two seconds and is dropped.
large = emptied("large")
compete = emptied("compete")
forever = emptied("forever")  # No time to live at all, so that the broker has nothing to write into a message.
