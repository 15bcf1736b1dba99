"""Which of several consumers gets messages."""

import contextlib
import time

from rabbitmq_amqp_python_client.qpid.proton._data import int32
from rabbitmq_amqp_python_client.qpid.proton._exceptions import Timeout

from program import program
from server import PATIENCE, give_credit, held


def publish(server, *bodies):
    server.publish_all({"address": "/queues/p.q", "body": body.encode(), "durable": True} for body in bodies)


def shares(*receivers, count):
    """What each receiver has got once they have that number of messages, or time is up."""
    until = time.monotonic() + PATIENCE
    while sum(receiver.fetcher.has_message for receiver in receivers) < count and time.monotonic() < until:
        for receiver in receivers:
            with contextlib.suppress(Timeout):
                receiver.connection.wait(lambda: False, timeout=0.1)
    return [[held(receiver) for _ in range(receiver.fetcher.has_message)] for receiver in receivers]


@program
def consumer_priorities(server):
    """Two consumers, the second with the priority and the credit that the label tells."""
    for kind in ["quorum", "classic"]:
        for label, priority in {"5": int32(5), "-1": int32(-1), "5 as long": 5}.items():
            # What consumers have returned when they went would come again.
            server.queue("p.q", x_queue_type=kind)
            with server.frugal_consumer("p.q", 4) as first, server.frugal_consumer("p.q", 4, priority) as second:
                publish(server, "1", "2", "3", "4")
                yield f"{kind}: {label}", shares(first, second, count=4)
            server.remove("/queues/p.q")
        server.queue("p.q", x_queue_type=kind)
        with server.frugal_consumer("p.q", 10) as first, server.frugal_consumer("p.q", 1, int32(1)) as second:
            publish(server, "1", "2")
            yield f"{kind}: with credit for one", shares(first, second, count=2)
            give_credit(second, 1)
            publish(server, "3", "4")
            yield f"{kind}: with credit for one more", shares(first, second, count=2)
        server.remove("/queues/p.q")


@program
def single_active_consumer_priorities(server):
    """Which consumer is the active one, when the second has the priority that the label tells."""
    for kind in ["quorum", "classic"]:
        for label, priority in {"1": int32(1), "-1": int32(-1)}.items():
            server.queue("p.q", x_queue_type=kind, x_single_active_consumer=True)
            with server.frugal_consumer("p.q", 4) as first, server.frugal_consumer("p.q", 4, priority) as second:
                publish(server, "1", "2")
                yield f"{kind}: {label}", shares(first, second, count=2)
            server.remove("/queues/p.q")
        server.queue("p.q", x_queue_type=kind, x_single_active_consumer=True)
        with server.frugal_consumer("p.q", 4) as first, server.frugal_consumer("p.q", 4) as second:
            with server.frugal_consumer("p.q", 4, int32(1)) as third:
                first.close()
                publish(server, "1")
                yield f"{kind}: after the first", shares(second, third, count=1)
        server.remove("/queues/p.q")
