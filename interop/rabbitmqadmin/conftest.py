"""The fixture: a virtual host of its own for each test."""

import uuid

import pytest

from support import admin


@pytest.fixture
def vhost():
    name = f"admin-{uuid.uuid4()}"
    admin("/", "vhosts", "declare", "--name", name)
    yield name
    admin("/", "vhosts", "delete", "--name", name)
