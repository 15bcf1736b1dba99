"""A broker for each test, and an event loop for each test that is a coroutine."""

import asyncio
import inspect

import pytest

from support import SDK_VERSION
from virtual_clock import Broker

# The administration client of 7.14.3 passes no option on to its HTTP client, so it cannot be told which authority to trust.
OF_NEWEST = ["test_admin.py"]
collect_ignore = OF_NEWEST if SDK_VERSION == "7.14.3" else []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def own_broker():
    """Queues that are empty and a clock that the test moves."""
    with Broker() as broker:
        yield broker
