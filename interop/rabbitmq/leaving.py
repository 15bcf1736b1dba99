"""Consumers that go with messages in hand: how, and what the next consumer gets."""

import contextlib
import socket

from rabbitmq_amqp_python_client.qpid.proton._data import symbol
from rabbitmq_amqp_python_client.qpid.proton._endpoints import Endpoint
from rabbitmq_amqp_python_client.qpid.proton._exceptions import ProtonException

from program import bodies, dead_letters, no_dead_letters, program
from server import PATIENCE


def close_link(receiver):
    receiver.close()


def detach_link(receiver):
    # Proton does not tell the answer. What follows on the connection is later than the detach.
    receiver.link.detach()


def end_session(receiver):
    session = receiver.link.session
    session.close()
    receiver.connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, timeout=PATIENCE)


def close_connection(receiver):
    receiver.connection.close()


def lose_connection(receiver):
    # There is no answer to wait for when the client closes it.
    receiver.connection.timeout = 0.1
    receiver.connection.conn.transport._selectable._delegate.shutdown(socket.SHUT_RDWR)


WAYS = [close_link, detach_link, end_session, close_connection, lose_connection]


def leave(server, queue, way, count):
    """Takes some messages and goes without settling them."""
    with contextlib.suppress(ProtonException), server.consumer(queue) as receiver:
        taken = [receiver.receive(timeout=PATIENCE) for _ in range(count)]
        assert len(taken) == count
        way(receiver)


def marks(message):
    """What a delivery says of those before it."""
    told = {name: one for name, one in message["annotations"].items() if name not in ("x-exchange", "x-routing-key")}
    return {"delivery-count": message["delivery-count"], "first-acquirer": message["first-acquirer"], **told}


def redelivered(messages):
    """The order, and what each delivery says of those before it, for once if all say the same."""
    told = [marks(message) for message in messages]
    return [*bodies(messages), *(told[:1] if told == told[:1] * len(told) else told)]


@program
def leaving(server):
    """A consumer goes with two messages in hand, of queues of both kinds."""
    for kind in ["quorum", "classic"]:
        for way in WAYS:
            server.queue("p.q", x_queue_type=kind)
            for body in [b"1", b"2"]:
                server.publish("/queues/p.q", body, durable=True)
            leave(server, "p.q", way, 2)
            yield f"{kind}: {way.__name__}", redelivered(server.take("p.q", "accepted", "accepted"))
            server.remove("/queues/p.q")


@program
def leaving_again(server):
    """Which ways of going count for the delivery limit: where a message is after two of them."""
    for way in WAYS:
        dead_letters(server, "p.q", x_delivery_limit=1)
        server.publish("/queues/p.q", b"body", durable=True)
        leave(server, "p.q", way, 1)
        leave(server, "p.q", way, 1)
        yield way.__name__, server.which_has_one("p.q", "p.dead")
        no_dead_letters(server, "p.q")


@program
def classic_deliveries(server):
    """What a consumer of a classic queue gets again."""
    server.queue("p.q", x_queue_type="classic")
    noted = {"failed": True, "annotations": {symbol("x-opt-note"): "one"}}
    for label, action in {"released": "released", "failed": {"failed": True}, "failed with a note": noted}.items():
        server.publish("/queues/p.q", durable=True)
        yield f"{label} twice", [marks(one) for one in server.take("p.q", action, action, "accepted")]
    server.remove("/queues/p.q")
