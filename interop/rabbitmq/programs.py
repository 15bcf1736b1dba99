"""What RabbitMQ's users do, each with the answers of the server. The same programs run against RabbitMQ 4.0.5 and
against Railbus; RabbitMQ's answers are kept in `recorded.json`."""

import importlib
import json
import sys

from rabbitmq_amqp_python_client.qpid.proton._data import symbol

from program import PROGRAMS, bodies, dead_letters, no_dead_letters, program
from server import Server

# Each subject of its own has its programs in its own module.
for subject in ["leaving", "routing", "counts", "consumers", "definitions"]:
    importlib.import_module(subject)


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


def policy(server, name, definition, operator=False, **fields):
    """Makes a policy for queues and exchanges whose names begin `p.`."""
    path = "operator-policies" if operator else "policies"
    body = {"pattern": "^p\\.", "definition": definition, **{key.replace("_", "-"): value for key, value in fields.items()}}
    return server.http("PUT", f"/{path}/%2F/{name}", body)


def no_policies(server, *names):
    for name in names:
        server.http("DELETE", f"/policies/%2F/{name}")
        server.http("DELETE", f"/operator-policies/%2F/{name}")


@program
def operator_policies(server):
    """Operator policies over HTTP, and what holds with a user's policy and arguments beside them."""
    user = {"message-ttl": 60000, "max-length": 10, "delivery-limit": 3, "overflow": "drop-head"}
    operator = {"message-ttl": 30000, "max-length": 20, "expires": 600000, "delivery-limit": -1, "overflow": "reject-publish"}
    server.queue("p.q", x_message_ttl=10000)
    yield "make", policy(server, "p.cap", operator, operator=True, apply_to="queues")
    yield "make again", policy(server, "p.cap", operator, operator=True, apply_to="queues")
    yield "show", server.http("GET", "/operator-policies/%2F/p.cap")
    yield "list", server.http("GET", "/operator-policies/%2F")
    yield "not among the users'", server.http("GET", "/policies/%2F/p.cap")
    yield "a key of users", policy(server, "p.bad", {"dead-letter-exchange": "x"}, operator=True)
    yield "the operator's alone", server.policed("p.q", None, "p.cap")
    yield "make the user's", policy(server, "p.user", user)
    yield "both", server.policed("p.q", "p.user", "p.cap")
    yield "remove", server.http("DELETE", "/operator-policies/%2F/p.cap")
    yield "the user's alone", server.policed("p.q", "p.user", None)
    yield "remove again", server.http("DELETE", "/operator-policies/%2F/p.cap")
    no_policies(server, "p.user")
    yield "neither", server.policed("p.q", None, None)
    server.remove("/queues/p.q")


@program
def policy_choice(server):
    """Which of several policies applies: by priority, kind and keys. There is never more than one."""
    server.queue("p.q")
    server.queue("p.c", x_queue_type="classic")
    policy(server, "p.low", {"max-length": 1}, priority=-1)
    policy(server, "p.high", {"expires": 600000}, priority=5)
    yield "the higher", server.policed("p.q", "p.high", None)
    yield "lowered", policy(server, "p.high", {"expires": 600000}, priority=-2)
    yield "the other", server.policed("p.q", "p.low", None)
    yield "for classic queues", policy(server, "p.classic", {"max-length": 2}, priority=1, apply_to="classic_queues")
    yield "a classic queue", server.policed("p.c", "p.classic", None)
    yield "for quorum queues", policy(server, "p.quorum", {"max-length": 3}, priority=2, apply_to="quorum_queues")
    yield "a quorum queue", server.policed("p.q", "p.quorum", None)
    yield "a key that classic queues lack", policy(server, "p.limit", {"max-length": 4, "delivery-limit": 4}, priority=3)
    yield "a quorum queue has it", server.policed("p.q", "p.limit", None)
    yield "a classic queue is passed over", server.policed("p.c", "p.classic", None)
    yield "for exchanges", policy(server, "p.x", {"max-length": 5}, priority=4, apply_to="exchanges")
    yield "for streams", policy(server, "p.s", {"max-length": 6}, priority=4, apply_to="streams")
    yield "neither for queues", server.policed("p.q", "p.limit", None)
    yield "by another pattern", server.http("PUT", "/policies/%2F/p.limit", {"pattern": "^q", "definition": {"max-length": 4}})
    yield "which does not fit", server.policed("p.q", "p.quorum", None)
    yield "list", sorted(one["name"] for one in server.http("GET", "/policies/%2F")[1])
    no_policies(server, "p.low", "p.high", "p.classic", "p.quorum", "p.limit", "p.x", "p.s")
    server.remove("/queues/p.q", "/queues/p.c")


@program
def policy_effects(server):
    """Length, overflow, delivery limit and time to live by policy, on queues that are there already."""
    server.queue("p.dead", x_message_ttl=600000)
    server.exchange("p.dlx", "fanout")
    server.bind("p.dlx", "p.dead")
    for kind in ["classic", "quorum"]:
        queue = f"p.q.{kind}"
        server.queue(queue, x_queue_type=kind, x_dead_letter_exchange="p.dlx")
        policy(server, "p.p", {"max-length": 1}, pattern="^p\\.q")
        server.publish(f"/queues/{queue}", b"oldest", durable=True)
        server.publish(f"/queues/{queue}", b"newest", durable=True)
        yield f"{kind}: too long", bodies(server.take("p.dead", "accepted"))
        policy(server, "p.p", {"max-length": 1, "overflow": "reject-publish"}, pattern="^p\\.q")
        # A quorum queue takes one more.
        server.publish(f"/queues/{queue}", b"refused", durable=True)
        yield f"{kind}: refused", server.publish(f"/queues/{queue}", b"refused", durable=True)
        server.ask("DELETE", f"/queues/{queue}/messages")
        policy(server, "p.p", {"message-ttl": 200}, pattern="^p\\.q")
        server.publish(f"/queues/{queue}", b"expired", durable=True)
        yield f"{kind}: expired", bodies(server.take("p.dead", "accepted"))
        no_policies(server, "p.p")
        server.publish(f"/queues/{queue}", b"stays", durable=True)
        yield f"{kind}: without a policy", bodies(server.take(queue, "accepted"))
        server.remove(f"/queues/{queue}")
    for kind in ["classic", "quorum"]:
        queue = f"p.q.{kind}"
        server.queue(queue, x_queue_type=kind, x_max_length=1, x_overflow="reject-publish", x_message_ttl=600000)
        policy(server, "p.p", {"overflow": "drop-head", "max-length": 5}, pattern="^p\\.q")
        for _ in range(3):
            outcome = server.publish(f"/queues/{queue}", durable=True)
        yield f"{kind}: a policy against arguments", outcome
        policy(server, "p.p", {"message-ttl": 200}, pattern="^p\\.q")
        server.ask("DELETE", f"/queues/{queue}/messages")
        server.publish(f"/queues/{queue}", durable=True)
        yield f"{kind}: the lower time", server.is_empty(queue)
        no_policies(server, "p.p")
        server.remove(f"/queues/{queue}")
    server.exchange("p.x", "direct")
    policy(server, "p.p", {"alternate-exchange": "p.dlx"}, pattern="^p\\.x$", apply_to="exchanges")
    yield "without a binding", server.publish("/exchanges/p.x/k", b"alternate", durable=True)
    yield "alternate exchange", bodies(server.take("p.dead", "accepted"))
    no_policies(server, "p.p")
    yield "without the policy", server.publish("/exchanges/p.x/k", durable=True)
    server.remove("/exchanges/p.x")
    server.queue("p.q.limit", x_dead_letter_exchange="p.dlx")
    policy(server, "p.p", {"delivery-limit": 1}, pattern="^p\\.q")
    server.publish("/queues/p.q.limit", b"limit", durable=True)
    server.take("p.q.limit", {"failed": True}, {"failed": True})
    yield "delivery limit", bodies(server.take("p.dead", "accepted"))
    no_policies(server, "p.p")
    no_dead_letters(server, "p.q.limit")


@program
def policy_on_messages(server):
    """A policy that comes when messages are there."""
    server.queue("p.dead", x_message_ttl=600000)
    server.exchange("p.dlx", "fanout")
    server.bind("p.dlx", "p.dead")
    for kind in ["classic", "quorum"]:
        queue = f"p.q.{kind}"
        server.queue(queue, x_queue_type=kind, x_dead_letter_exchange="p.dlx")
        for body in [b"1", b"2", b"3"]:
            server.publish(f"/queues/{queue}", body, durable=True)
        policy(server, "p.p", {"max-length": 2}, pattern="^p\\.q")
        yield f"{kind}: made shorter", server.comes_to(queue, 2)
        server.ask("DELETE", "/queues/p.dead/messages")
        policy(server, "p.p", {"message-ttl": 100}, pattern="^p\\.q")
        yield f"{kind}: made to expire", server.comes_to(queue, 0)
        no_policies(server, "p.p")
        server.ask("DELETE", "/queues/p.dead/messages")
        server.remove(f"/queues/{queue}")
    no_dead_letters(server)


@program
def http_queues(server):
    """Queues over HTTP."""
    quorum = {"durable": True, "arguments": {"x-queue-type": "quorum", "x-max-length": 5}}
    fields = ["name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments"]
    yield "declare", server.http("PUT", "/queues/%2F/p.q", quorum)
    yield "declare again", server.http("PUT", "/queues/%2F/p.q", quorum)
    other = {**quorum, "arguments": {**quorum["arguments"], "x-max-length": 6}}
    yield "declare with another value", server.http("PUT", "/queues/%2F/p.q", other)
    yield "declare wrongly", server.http("PUT", "/queues/%2F/p.w", {"durable": True, "arguments": {"x-expires": 0}})
    yield "reserved name", server.http("PUT", "/queues/%2F/amq.q", {"durable": True})
    yield "a flag that is none", server.http("PUT", "/queues/%2F/p.w", {"durable": "x"})
    yield "a classic one", server.http("PUT", "/queues/%2F/p.c", {"durable": True, "auto_delete": False, "arguments": {}})
    yield "show", server.http_fields("/queues/%2F/p.q", fields)
    yield "show the classic one", server.http_fields("/queues/%2F/p.c", fields)
    status, queues = server.http_fields("/queues/%2F", fields)
    # Other suites have queues on the same broker.
    yield "list", [status, [one for one in queues if one["name"].startswith("p.")]]
    yield "show what is not there", server.http("GET", "/queues/%2F/p.none")
    yield "of a virtual host that is not there", server.http("GET", "/queues/p.none/p.q")
    yield "purge", server.http("DELETE", "/queues/%2F/p.q/contents")
    yield "purge what is not there", server.http("DELETE", "/queues/%2F/p.none/contents")
    yield "delete if unused", server.http("DELETE", "/queues/%2F/p.c?if-unused=true")
    yield "delete", server.http("DELETE", "/queues/%2F/p.q")
    yield "delete again", server.http("DELETE", "/queues/%2F/p.q")


@program
def http_exchanges(server):
    """Exchanges and bindings over HTTP."""
    fields = ["name", "vhost", "type", "durable", "auto_delete", "internal", "arguments"]
    alternate = {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "amq.fanout"}}
    yield "declare", server.http("PUT", "/exchanges/%2F/p.x", alternate)
    yield "declare again", server.http("PUT", "/exchanges/%2F/p.x", alternate)
    yield "declare as another type", server.http("PUT", "/exchanges/%2F/p.x", {**alternate, "type": "direct"})
    yield "an unknown type", server.http("PUT", "/exchanges/%2F/p.w", {"type": "other", "durable": True})
    yield "without a type", server.http("PUT", "/exchanges/%2F/p.w", {"durable": True})
    yield "reserved name", server.http("PUT", "/exchanges/%2F/amq.other", {"type": "direct", "durable": True})
    yield "show", server.http_fields("/exchanges/%2F/p.x", fields)
    yield "show a reserved one", server.http_fields("/exchanges/%2F/amq.topic", fields)
    yield "show the default one", server.http_fields("/exchanges/%2F/amq.default", fields)
    # Plug-ins make others.
    kept = ["", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic", "p.x"]
    names = [one["name"] for one in server.http("GET", "/exchanges/%2F")[1]]
    yield "list", sorted(name for name in names if name in kept)
    yield "delete a reserved one", server.http("DELETE", "/exchanges/%2F/amq.topic")
    server.queue("p.q")
    yield "bind", server.http("POST", "/bindings/%2F/e/p.x/q/p.q", {"routing_key": "a/b"})
    yield "where it is", server.location("/bindings/%2F/e/p.x/q/p.q", {"routing_key": "a/b"})
    yield "bind with an argument", server.http("POST", "/bindings/%2F/e/p.x/q/p.q", {"routing_key": "k", "arguments": {"n": 1}})
    yield "bind without a key", server.location("/bindings/%2F/e/p.x/q/p.q", {})
    yield "bind exchanges", server.http("POST", "/bindings/%2F/e/p.x/e/amq.fanout", {"routing_key": "#"})
    yield "bind what is not there", server.http("POST", "/bindings/%2F/e/p.x/q/p.none", {"routing_key": "k"})
    yield "bind to what is not there", server.http("POST", "/bindings/%2F/e/p.none/q/p.q", {"routing_key": "k"})
    for path in ["/bindings/%2F/e/p.x/q/p.q", "/queues/%2F/p.q/bindings", "/exchanges/%2F/p.x/bindings/source"]:
        yield f"list by {path}", sorted_bindings(server.http("GET", path))
    yield "show one", server.http("GET", "/bindings/%2F/e/p.x/q/p.q/a%252Fb")
    yield "unbind", server.http("DELETE", "/bindings/%2F/e/p.x/q/p.q/a%252Fb")
    yield "unbind again", server.http("DELETE", "/bindings/%2F/e/p.x/q/p.q/a%252Fb")
    yield "delete if unused", server.http("DELETE", "/exchanges/%2F/p.x?if-unused=true")
    yield "delete", server.http("DELETE", "/exchanges/%2F/p.x")
    yield "delete again", server.http("DELETE", "/exchanges/%2F/p.x")
    server.remove("/queues/p.q", "/exchanges/p.w")


def sorted_bindings(answer):
    status, bindings = answer
    for one in bindings:
        # The hash of arguments is each server's own.
        one["properties_key"] = one["properties_key"].split("~")[0]
    return [status, sorted(bindings, key=lambda one: (one["source"], one["destination"], one["routing_key"]))]


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
