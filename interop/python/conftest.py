"""The fixtures: one client for the run, and each queue of Config.json emptied before use."""

import pytest

from support import PREFIX, SDK_VERSION, Queue, connect
from virtual_clock import Broker

# The administration client of 7.14.3 does not take its own option to speak plain HTTP.
ADMINISTRATION = ["test_admin.py", "test_http.py", "test_identity_admin.py", "test_issuer_admin.py", "test_rules.py"]
# The document on faults has a table for the newest version alone.
OF_NEWEST = [*ADMINISTRATION, "test_faults.py"]
collect_ignore = OF_NEWEST if SDK_VERSION == "7.14.3" else []


@pytest.fixture
def own_broker():
    """A broker for one test, whose queues are empty and whose clock the test moves."""
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def broker(request):
    """A broker for one module, with the entities that the module names, and a clock that it moves."""
    with Broker(getattr(request.module, "ENTITIES", "clock.json")) as broker:
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


def emptied(suffix):
    """A fixture: the queue of that name, without messages."""

    @pytest.fixture
    def queue(cleared):
        return cleared(suffix)

    return queue


plain = emptied("plain")  # Locks of one minute, three deliveries.
shortlock = emptied("shortlock")  # Locks of five seconds.
ttl = emptied("ttl")  # Expired messages go to the dead-letter queue.
ttl_drop = emptied("ttl-drop")  # Every message expires after two seconds and is dropped.
large = emptied("large")
once = emptied("once")  # Messages with an id of the last twenty seconds are accepted and dropped.
compete = emptied("compete")
