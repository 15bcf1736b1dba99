"""What RabbitMQ's users do, each with the answers of the server. The same programs run against RabbitMQ 4.0.5 and
against Railbus; RabbitMQ's answers are kept in `recorded.json`."""

import json
import sys

from rabbitmq_amqp_python_client.qpid.proton._data import symbol

from server import Server

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def queues(server):
    """Queues over the management pair."""
    classic = {"durable": True, "exclusive": False, "auto_delete": False, "arguments": {"x-message-ttl": 60000}}
    yield "declare", server.ask("PUT", "/queues/p.classic", classic)
    yield "declare again", server.ask("PUT", "/queues/p.classic", classic)
    other = {**classic, "arguments": {"x-message-ttl": 60001}}
    yield "declare with another value", server.ask("PUT", "/queues/p.classic", other)
    yield "declare without the value", server.ask("PUT", "/queues/p.classic", {**classic, "arguments": {}})
    yield "declare as quorum", server.queue("p.classic", x_message_ttl=60000)
    yield "show", server.ask("GET", "/queues/p.classic")
    yield "delete", server.ask("DELETE", "/queues/p.classic")
    yield "delete what is not there", server.ask("DELETE", "/queues/p.classic")
    yield "show what is not there", server.ask("GET", "/queues/p.classic")
    yield "purge what is not there", server.ask("DELETE", "/queues/p.classic/messages")
    yield "declare a quorum queue", server.queue("p.quorum", x_delivery_limit=3)
    server.remove("/queues/p.quorum")


@program
def arguments(server):
    """Arguments of queues that cannot be."""
    wrong = [
        {"x-message-ttl": -1},
        {"x-message-ttl": "1"},
        {"x-expires": 0},
        {"x-max-length": -1},
        {"x-overflow": "drop-tail"},
        {"x-dead-letter-routing-key": "k"},
        {"x-dead-letter-exchange": 5},
        {"x-queue-type": "other"},
        {"x-single-active-consumer": "yes"},
        {"x-max-priority": 256},
        {"x-max-priority": 0},
        {"x-max-priority": -1},
        {"x-max-priority": "9"},
        {"x-queue-type": "quorum", "x-max-priority": 9},
    ]
    for arguments in wrong:
        answer = server.ask("PUT", "/queues/p.wrong", {"durable": True, "arguments": arguments})
        yield json.dumps(arguments), answer
        server.remove("/queues/p.wrong")
    yield "unknown key", server.ask("PUT", "/queues/p.wrong", {"lasting": True})
    yield "empty name", server.ask("PUT", "/queues/", {"durable": True})
    yield "reserved name", server.ask("PUT", "/queues/amq.q", {"durable": True})
    quorum = {"durable": True, "exclusive": True, "arguments": {"x-queue-type": "quorum"}}
    yield "exclusive quorum queue", server.ask("PUT", "/queues/p.wrong", quorum)


@program
def exchanges(server):
    """Exchanges and bindings over the management pair."""
    for kind in ["direct", "fanout", "topic", "headers"]:
        yield f"declare {kind}", server.exchange(f"p.{kind}", kind)
    yield "declare again", server.exchange("p.direct", "direct")
    yield "declare as another type", server.exchange("p.direct", "fanout")
    yield "declare with an alternate", server.exchange("p.direct", "direct", alternate_exchange="p.fanout")
    yield "unknown type", server.exchange("p.other", "other")
    yield "reserved name", server.exchange("amq.other", "direct")
    yield "reserved name that is there", server.exchange("amq.direct", "direct")
    yield "default", server.exchange("amq.default", "direct")
    yield "delete a reserved one", server.ask("DELETE", "/exchanges/amq.direct")
    yield "bind a queue that is not there", server.bind("p.direct", "p.none", "k")
    server.queue("p.q")
    yield "bind to an exchange that is not there", server.bind("p.none", "p.q", "k")
    yield "bind", server.bind("p.direct", "p.q", "a/b")
    yield "bind again", server.bind("p.direct", "p.q", "a/b")
    yield "bind headers wrongly", server.bind("p.headers", "p.q", "", x_match="some")
    yield "list", server.ask("GET", "/bindings?src=p.direct&dstq=p.q&key=a%2Fb")
    yield "list of nothing", server.ask("GET", "/bindings?src=p.none&dstq=p.q&key=k")
    yield "unbind", server.ask("DELETE", "/bindings/src=p.direct;dstq=p.q;key=a%2Fb;args=")
    yield "unbind again", server.ask("DELETE", "/bindings/src=p.direct;dstq=p.q;key=a%2Fb;args=")
    yield "list after that", server.ask("GET", "/bindings?src=p.direct&dstq=p.q&key=a%2Fb")
    yield "delete", server.ask("DELETE", "/exchanges/p.direct")
    yield "delete again", server.ask("DELETE", "/exchanges/p.direct")
    server.remove("/exchanges/p.fanout", "/exchanges/p.topic", "/exchanges/p.headers", "/queues/p.q")


@program
def outcomes(server):
    """What a publisher is told."""
    server.queue("p.q")
    server.exchange("p.x", "direct")
    yield "to a queue", server.publish("/queues/p.q")
    yield "to a queue that is not there", server.publish("/queues/p.none")
    yield "to an exchange that is not there", server.publish("/exchanges/p.none/k")
    yield "without a binding", server.publish("/exchanges/p.x/k")
    yield "bad address", server.publish("/exchanges/")
    yield "to by the message", server.publish(None, address="/queues/p.q")
    yield "to a missing queue by the message", server.publish(None, address="/queues/p.none")
    yield "to a missing exchange by the message", server.publish(None, address="/exchanges/p.none/k")
    yield "a bad to", server.publish(None, address="somewhere")
    yield "no to", server.publish(None)
    server.ask("PUT", "/queues/p.full", {"durable": True, "arguments": {"x-max-length": 1, "x-overflow": "reject-publish"}})
    yield "into room", server.publish("/queues/p.full")
    yield "into a full queue", server.publish("/queues/p.full")
    server.bind("p.x", "p.full", "k")
    server.bind("p.x", "p.q", "k")
    yield "to a full queue and another", server.publish("/exchanges/p.x/k")
    server.remove("/queues/p.q", "/queues/p.full", "/exchanges/p.x")


@program
def deliveries(server):
    """What a consumer gets, of a quorum queue."""
    server.queue("p.q")
    server.exchange("p.x", "topic")
    server.bind("p.x", "p.q", "#")
    server.publish("/queues/p.q", b"1", ttl=60, durable=True)
    server.publish("/exchanges/p.x/a.b", b"2", durable=True, annotations={symbol("x-mine"): "kept"})
    yield "from the default exchange, and from another", server.take("p.q", "accepted", "accepted")
    server.publish("/queues/p.q", durable=True)
    yield "released twice", server.take("p.q", "released", "released", "accepted")
    server.publish("/queues/p.q", durable=True)
    failed = {"failed": True}
    yield "failed twice", server.take("p.q", failed, failed, "accepted")
    server.publish("/queues/p.q", durable=True)
    noted = {"annotations": {symbol("x-opt-note"): "one", symbol("x-other"): 2}}
    again = {"annotations": {symbol("x-opt-note"): "two"}}
    yield "modified with annotations", server.take("p.q", noted, again, "accepted")
    yield "a queue that is not there", server.attach_consumer("p.none")
    server.remove("/queues/p.q", "/exchanges/p.x")


def dead_letters(server, queue, **arguments):
    """A queue whose dead letters go to `p.dead` by a fanout exchange."""
    server.queue("p.dead")
    server.exchange("p.dlx", "fanout")
    server.bind("p.dlx", "p.dead")
    return server.queue(queue, x_dead_letter_exchange="p.dlx", **arguments)


def no_dead_letters(server, *queues):
    server.remove("/queues/p.dead", "/exchanges/p.dlx", *(f"/queues/{queue}" for queue in queues))


@program
def dead_letter_rejected(server):
    yield "declare", dead_letters(server, "p.q")
    server.publish("/queues/p.q", b"rejected", ttl=60, durable=True, annotations={symbol("x-mine"): "kept"})
    server.take("p.q", "rejected")
    yield "rejected", server.take("p.dead", "accepted")
    server.publish("/queues/p.q", b"undeliverable", durable=True)
    server.take("p.q", {"failed": True, "undeliverable": True, "annotations": {symbol("x-opt-note"): "why"}})
    yield "undeliverable", server.take("p.dead", "accepted")
    no_dead_letters(server, "p.q")


@program
def dead_letter_expired(server):
    dead_letters(server, "p.q", x_message_ttl=200, x_dead_letter_routing_key="other")
    server.publish("/queues/p.q", b"expired", durable=True)
    yield "by the queue", server.take("p.dead", "accepted")
    server.publish("/queues/p.q", b"own", ttl=0.1, durable=True)
    yield "by its own time", server.take("p.dead", "accepted")
    no_dead_letters(server, "p.q")


@program
def dead_letter_length(server):
    dead_letters(server, "p.q", x_max_length=1)
    server.publish("/queues/p.q", b"oldest", durable=True)
    server.publish("/queues/p.q", b"newest", durable=True)
    yield "the oldest", server.take("p.dead", "accepted")
    no_dead_letters(server, "p.q")


@program
def dead_letter_limit(server):
    dead_letters(server, "p.q", x_delivery_limit=1)
    server.publish("/queues/p.q", b"limit", durable=True)
    server.take("p.q", {"failed": True}, {"failed": True})
    yield "after the limit", server.take("p.dead", "accepted")
    no_dead_letters(server, "p.q")


@program
def dead_letter_again(server):
    """Two deaths of one message, in two queues and twice in one."""
    server.exchange("p.dlx", "direct")
    server.queue("p.dead", x_dead_letter_exchange="", x_dead_letter_routing_key="p.q")
    server.bind("p.dlx", "p.dead", "k")
    server.queue("p.q", x_dead_letter_exchange="p.dlx", x_dead_letter_routing_key="k")
    server.publish("/queues/p.q", b"again", durable=True)
    server.take("p.q", "rejected")
    yield "first", server.take("p.dead", "rejected")
    yield "second", server.take("p.q", "rejected")
    yield "third", server.take("p.dead", "accepted")
    no_dead_letters(server, "p.q")


@program
def dead_letter_cycle(server):
    """A message that expires in a circle is dropped."""
    server.queue("p.a", x_message_ttl=100, x_dead_letter_exchange="", x_dead_letter_routing_key="p.b")
    server.queue("p.b", x_message_ttl=100, x_dead_letter_exchange="", x_dead_letter_routing_key="p.a")
    server.publish("/queues/p.a", durable=True)
    yield "both are empty", [server.is_empty("p.a"), server.is_empty("p.b")]
    server.remove("/queues/p.a", "/queues/p.b")


@program
def dead_letter_nowhere(server):
    server.queue("p.q", x_dead_letter_exchange="p.none")
    server.publish("/queues/p.q", durable=True)
    server.take("p.q", "rejected")
    yield "it is dropped", server.is_empty("p.q")
    server.remove("/queues/p.q")


@program
def dead_letter_fans_out(server):
    """A dead letter goes to each queue once, by all its keys."""
    dead_letters(server, "p.q")
    server.queue("p.also")
    server.bind("p.dlx", "p.also")
    server.bind("p.dlx", "p.also", "twice")
    server.publish("/queues/p.q", b"both", durable=True)
    server.take("p.q", "rejected")
    yield "one", server.take("p.dead", "accepted")
    yield "the other", server.take("p.also", "accepted")
    yield "no more", [server.is_empty("p.dead"), server.is_empty("p.also")]
    no_dead_letters(server, "p.q", "p.also")


@program
def policies(server):
    """Policies over HTTP, as their effects show them."""
    definition = {"pattern": "^p\\.", "definition": {"message-ttl": 200, "dead-letter-exchange": "p.dlx"}, "apply-to": "queues"}
    server.queue("p.dead", x_expires=600000)
    server.exchange("p.dlx", "fanout")
    server.bind("p.dlx", "p.dead")
    yield "make", server.http("PUT", "/policies/%2F/p.ttl", {**definition, "pattern": "^p\\.q$"})
    yield "show", server.http("GET", "/policies/%2F/p.ttl")
    yield "unknown key", server.http("PUT", "/policies/%2F/p.bad", {**definition, "definition": {"nosuch": 1}})
    yield "negative", server.http("PUT", "/policies/%2F/p.bad", {**definition, "definition": {"message-ttl": -1}})
    server.queue("p.q", x_message_ttl=60000)
    server.publish("/queues/p.q", b"by policy", durable=True)
    yield "a dead letter by policy", server.take("p.dead", "accepted")
    yield "remove", server.http("DELETE", "/policies/%2F/p.ttl")
    yield "remove again", server.http("DELETE", "/policies/%2F/p.ttl")
    no_dead_letters(server, "p.q")


@program
def single_active_consumer(server):
    yield "declare", server.queue("p.q", x_single_active_consumer=True)
    for body in [b"1", b"2"]:
        server.publish("/queues/p.q", body, durable=True)
    with server.consumer("p.q") as first:
        yield "the first consumer", server.take_one(first, "accepted")["body"]
        with server.consumer("p.q") as second:
            yield "consumers", server.ask("GET", "/queues/p.q")[1]["consumer_count"]
            yield "the first consumer again", server.take_one(first, "accepted")["body"]
            first.close()
            server.publish("/queues/p.q", b"3", durable=True)
            yield "the second consumer", server.take_one(second, "accepted")["body"]
    server.remove("/queues/p.q")


@program
def priorities(server):
    """In which order messages of different priorities come."""
    given = [None, 3, 5, 40, 31, 4]
    queues = {"a classic queue with levels": {"x_queue_type": "classic", "x_max_priority": 4}, "a quorum queue": {}}
    queues["a classic queue without levels"] = {"x_queue_type": "classic"}
    for label, arguments in queues.items():
        server.queue("p.q", **arguments)
        for priority in given:
            # The client writes a priority of 4 as none.
            fields = {} if priority is None else {"priority": priority}
            server.publish("/queues/p.q", str(priority).encode(), durable=True, **fields)
        taken = server.take("p.q", *["accepted"] * len(given))
        yield label, [message["body"] for message in taken]
        server.remove("/queues/p.q")


@program
def exclusive(server):
    """A queue of one connection."""
    body = {"durable": True, "exclusive": True, "auto_delete": False, "arguments": {}}
    owner = Server.__new__(Server)
    owner.__dict__.update(server.__dict__)
    owner.management_connection = server.connect()
    owner.management = owner.management_connection.management()
    yield "declare", owner.ask("PUT", "/queues/p.mine", body)
    yield "declare elsewhere", server.ask("PUT", "/queues/p.mine", body)
    yield "delete elsewhere", server.ask("DELETE", "/queues/p.mine")
    yield "show elsewhere", server.ask("GET", "/queues/p.mine")[0]
    yield "publish elsewhere", server.publish("/queues/p.mine")
    owner.management_connection.close()
    for _ in range(100):
        status = server.ask("GET", "/queues/p.mine")[0]
        if status == 404:
            break
    yield "after its connection", status


@program
def auto_delete(server):
    body = {"durable": True, "exclusive": False, "auto_delete": True, "arguments": {}}
    yield "declare", server.ask("PUT", "/queues/p.auto", body)
    yield "before a consumer", server.ask("GET", "/queues/p.auto")[0]
    yield "consume", server.attach_consumer("p.auto")
    for _ in range(100):
        status = server.ask("GET", "/queues/p.auto")[0]
        if status == 404:
            break
    yield "after the last consumer", status


def answers(name, host, port, http_port):
    """The answers of one program, by their labels."""
    server = Server(host, port, http_port)
    try:
        return dict(PROGRAMS[name](server))
    finally:
        server.close()


if __name__ == "__main__":
    host, port, http_port, *names = sys.argv[1:]
    recorded = {name: answers(name, host, int(port), int(http_port)) for name in names or PROGRAMS}
    print(json.dumps(recorded, indent=1))
