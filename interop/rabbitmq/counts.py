"""Queues that are purged or deleted with messages in them, and what is told of the number."""

from program import dead_letters, no_dead_letters, program
from server import give_credit, held, settle

THREE = [b"1", b"2", b"3"]


def fill(server, queue):
    server.publish_all({"address": f"/queues/{queue}", "body": body, "durable": True} for body in THREE)


@program
def purge_and_delete(server):
    """Over the management pair."""
    for kind in ["quorum", "classic"]:
        dead_letters(server, "p.q", x_queue_type=kind)
        fill(server, "p.q")
        yield f"{kind}: purge", server.ask("DELETE", "/queues/p.q/messages")
        yield f"{kind}: purge again", server.ask("DELETE", "/queues/p.q/messages")
        fill(server, "p.q")
        with server.frugal_consumer("p.q", credit=1) as receiver:
            yield f"{kind}: in hand", held(receiver)
            yield f"{kind}: available beside one in hand", server.comes_to("p.q", 2)
            yield f"{kind}: purge beside it", server.ask("DELETE", "/queues/p.q/messages")
            settle(receiver, "accepted")
            fill(server, "p.q")
            give_credit(receiver, 1)
            yield f"{kind}: in hand again", held(receiver)
            yield f"{kind}: delete beside it", server.ask("DELETE", "/queues/p.q")
            yield f"{kind}: the consumer", server.take_one(receiver, "accepted")
        server.queue("p.q", x_queue_type=kind)
        fill(server, "p.q")
        yield f"{kind}: delete", server.ask("DELETE", "/queues/p.q")
        server.queue("p.q", x_queue_type=kind)
        yield f"{kind}: a new one is empty", server.ask("GET", "/queues/p.q")[1]["message_count"]
        yield f"{kind}: nothing is a dead letter", server.ask("GET", "/queues/p.dead")[1]["message_count"]
        no_dead_letters(server, "p.q")


@program
def purge_and_delete_over_http(server):
    for kind in ["quorum", "classic"]:
        server.queue("p.q", x_queue_type=kind)
        fill(server, "p.q")
        yield f"{kind}: purge", server.http("DELETE", "/queues/%2F/p.q/contents")
        yield f"{kind}: it is empty", server.comes_to("p.q", 0)
        fill(server, "p.q")
        yield f"{kind}: delete if empty", server.http("DELETE", "/queues/%2F/p.q?if-empty=true")
        with server.consumer("p.q"):
            yield f"{kind}: delete if unused", server.http("DELETE", "/queues/%2F/p.q?if-unused=true")
        yield f"{kind}: delete", server.http("DELETE", "/queues/%2F/p.q")
        yield f"{kind}: it is gone", server.ask("GET", "/queues/p.q")
        server.remove("/queues/p.q")
