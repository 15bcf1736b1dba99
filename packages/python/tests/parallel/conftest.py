"""One broker for all workers of pytest-xdist, which the process that distributes the tests starts."""

import pytest
import railbus

ENTITIES = {"queues": [{"name": "orders", "lock-duration": "PT1M"}, {"name": "timed"}]}


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.broker = railbus.start(ENTITIES)
        config.add_cleanup(config.broker.stop)


def pytest_configure_node(node):
    node.workerinput["broker"] = node.config.broker.address


@pytest.fixture(scope="session")
def address(pytestconfig):
    return pytestconfig.workerinput["broker"]
