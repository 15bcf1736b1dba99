"""TLS as AMQP has it, `amqps://`: nothing but the broker's own certificate authority is trusted."""

import os

import pytest

from proton import ConnectionException, SSLDomain
from proton.utils import BlockingConnection

from support import KEY, KEY_NAME, PATIENCE, Queue, message


def secured(authority):
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    if authority:
        domain.set_trusted_ca_db(authority)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    # Proton compares what it connects to with names only, not with addresses.
    address = f"amqps://localhost:{os.environ['RAILBUS_PORT']}"
    return BlockingConnection(
        address, timeout=PATIENCE, ssl_domain=domain, user=KEY_NAME, password=KEY, allowed_mechs="PLAIN"
    )


def test_a_message_goes_over_tls(plain):
    connection = secured(os.environ["RAILBUS_CA"])
    queue = Queue(connection, plain.name)
    queue.send(message("within TLS"))
    [received] = queue.take()
    assert received.body == "within TLS"
    connection.close()


def test_a_client_that_does_not_trust_the_authority_does_not_connect(plain):
    with pytest.raises(ConnectionException):
        secured(None)
    assert plain.peek() == []
