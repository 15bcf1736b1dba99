"""Definitions over HTTP: what is exported, and what an import makes."""

from program import program

QUEUE = {"durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum", "x-max-length": 5}}
KINDS = ["exchanges", "queues", "bindings", "policies"]


def own(answer):
    """The entries of a definitions file that programs have made, in order."""
    status, file = answer
    entries = {kind: [one for one in file[kind] if is_own(one)] for kind in KINDS}
    return [status, {kind: sorted(ones, key=lambda one: sorted(map(str, one.items()))) for kind, ones in entries.items()}]


def is_own(entry):
    return any(str(entry.get(name)).startswith("p.") for name in ("name", "source", "destination"))


def make(server):
    server.exchange("p.alt", "fanout")
    server.exchange("p.x", "topic", alternate_exchange="p.alt")
    server.exchange("p.h", "headers")
    server.queue("p.q", x_max_length=5)
    server.queue("p.c", x_queue_type="classic", x_message_ttl=60000)
    server.bind("p.x", "p.q", "a.#")
    server.bind_exchange("p.x", "p.alt", "b.*")
    server.bind("p.h", "p.q", "", x_match="any", a="text", n=1)
    policy = {"pattern": "^p\\.", "definition": {"max-length": 9}, "apply-to": "queues", "priority": 1}
    server.http("PUT", "/policies/%2F/p.p", policy)


def unmake(server):
    server.http("DELETE", "/policies/%2F/p.p")
    server.remove(*(f"/exchanges/p.{name}" for name in ("x", "h", "alt")), *(f"/queues/p.{name}" for name in ("q", "c")))


@program
def definitions(server):
    """Exported, and imported again."""
    make(server)
    exported = own(server.http("GET", "/definitions"))
    yield "export", exported
    of_one = own(server.http("GET", "/definitions/%2F"))
    yield "export of one virtual host", of_one
    unmake(server)
    yield "import", server.http("POST", "/definitions", exported[1])
    yield "it is the same", own(server.http("GET", "/definitions")) == exported
    yield "import again", server.http("POST", "/definitions", exported[1])
    unmake(server)
    yield "import into one virtual host", server.http("POST", "/definitions/%2F", of_one[1])
    yield "it is the same too", own(server.http("GET", "/definitions/%2F")) == of_one
    unmake(server)


@program
def definitions_that_cannot_be(server):
    queue = {**QUEUE, "name": "p.q", "vhost": "/"}
    exchange = {"name": "p.x", "vhost": "/", "type": "direct", "durable": True, "auto_delete": False, "internal": False}
    exchange["arguments"] = {}
    binding = {"source": "p.x", "vhost": "/", "destination": "p.q", "destination_type": "queue", "routing_key": "k"}
    binding["arguments"] = {}
    policy = {"name": "p.p", "vhost": "/", "pattern": "^p\\.", "definition": {"max-length": 9}, "priority": 0}
    policy["apply-to"] = "queues"
    files = {
        "no object": [],
        "nothing": {},
        "a queue without a name": {"queues": [{**QUEUE, "vhost": "/"}]},
        "a queue of a virtual host that is not there": {"queues": [{**queue, "vhost": "p.none"}]},
        "a queue with a wrong argument": {"queues": [{**queue, "arguments": {"x-expires": 0}}]},
        "an exchange of an unknown type": {"exchanges": [{**exchange, "type": "other"}]},
        "an exchange with a reserved name": {"exchanges": [{**exchange, "name": "amq.p"}]},
        "an exchange beside a binding of what is not there": {"exchanges": [exchange], "bindings": [binding]},
        "a binding of what the file has": {"queues": [queue], "exchanges": [exchange], "bindings": [binding]},
        "a binding of the default exchange": {"bindings": [{**binding, "source": ""}]},
        "a binding of an unknown type": {"bindings": [{**binding, "destination_type": "other"}]},
        "a queue that differs": {"queues": [{**queue, "arguments": {"x-queue-type": "quorum", "x-max-length": 6}}]},
        "an exchange that differs": {"exchanges": [{**exchange, "type": "fanout"}]},
        "a policy with an unknown key": {"policies": [{**policy, "definition": {"nosuch": 1}}]},
        "a policy": {"policies": [policy]},
        "a policy that differs": {"policies": [{**policy, "priority": 3}]},
    }
    for label, file in files.items():
        yield label, server.http("POST", "/definitions", file)
        if label.startswith("an exchange beside"):
            yield "the exchange", server.http("GET", "/exchanges/%2F/p.x")[0]
            server.remove("/exchanges/p.x")
    yield "what is there", own(server.http("GET", "/definitions"))
    server.http("DELETE", "/policies/%2F/p.p")
    server.remove("/queues/p.q", "/exchanges/p.x")
