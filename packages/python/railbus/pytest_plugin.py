"""Fixtures: `railbus`, a broker for all tests; `railbus_namespace`, a namespace of it for one test; `fresh_railbus`,
a broker for one test.

A failed test shows what its brokers logged while it ran.
"""

import pytest

from .broker import Broker, running, start

_log_sizes = pytest.StashKey()


def pytest_addoption(parser):
    parser.addini("railbus_entities", "entities of the brokers of tests: a Config.json, or TOML or JSON", type="paths")


@pytest.fixture(scope="session")
def railbus_entities(pytestconfig):
    """The entities of every broker: a file or a dict, by default the file of the setting `railbus_entities`."""
    files = pytestconfig.getini("railbus_entities")
    return files[0] if files else None


@pytest.fixture(scope="session")
def railbus(railbus_entities):
    """A broker that all tests share. Its entities keep their messages from one test to the next."""
    with start(railbus_entities) as broker:
        yield broker


@pytest.fixture
def railbus_namespace(railbus):
    """A namespace of the test's own on the broker that all tests share: the same entities, without messages."""
    with railbus.create_namespace() as namespace:
        yield namespace


@pytest.fixture
def fresh_railbus(railbus_entities):
    """A broker of the test's own: empty entities and its own clock."""
    with start(railbus_entities) as broker:
        yield broker


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # What was logged before does not concern this test.
    item.stash[_log_sizes] = {broker: broker.log_size() for broker in running}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Broker):
                log = value.log(since=item.stash[_log_sizes].get(value, 0))
                report.sections.append((f"log of {name}", log))
    return report
