"""Where exchanges put messages: patterns of keys, headers, exchanges behind exchanges."""

from urllib.parse import quote

from rabbitmq_amqp_python_client.qpid.proton._data import int32, symbol, ulong

from program import bodies, program

PATTERNS = ["", "a", "a.b", "a.*", "*.b", "*", "*.*", "#", "a.#", "#.b", "#.b.#", "a.#.c", "a.*.c", "a.*.#", "a..c"]
KEYS = ["", "a", "b", "a.b", "a.c", "b.a", "a.b.c", "a..c", "a.b.b.c", ".", "a.", "A.b", "a.*", "a.#"]


@program
def topic_exchange(server):
    """Which routing keys each pattern takes."""
    server.exchange("p.x", "topic")
    queues = {pattern: f"p.t{number}" for number, pattern in enumerate(PATTERNS)}
    for pattern, queue in queues.items():
        server.queue(queue, x_queue_type="classic")
        yield f"bind '{pattern}'", server.bind("p.x", queue, pattern)
    server.publish_all({"address": f"/exchanges/p.x/{quote(key, safe='')}", "body": key.encode()} for key in KEYS)
    arrived = server.arrived(*queues.values())
    for pattern, queue in queues.items():
        yield f"'{pattern}'", arrived[queue]
    server.remove("/exchanges/p.x", *(f"/queues/{queue}" for queue in queues.values()))


@program
def topic_bindings(server):
    """Several patterns of one queue, and one of them less."""
    server.exchange("p.x", "topic")
    server.queue("p.q", x_queue_type="classic")
    for pattern in ["a.*", "*.b", "#"]:
        server.bind("p.x", "p.q", pattern)
    keys = ["a.b", "b.b", "c"]
    sent = [{"address": f"/exchanges/p.x/{key}", "body": key.encode()} for key in keys]
    yield "outcomes", server.publish_all(sent)
    yield "once each", server.arrived("p.q")["p.q"]
    server.remove("/bindings/src=p.x;dstq=p.q;key=%23;args=")
    yield "outcomes without '#'", server.publish_all(sent)
    yield "without '#'", server.arrived("p.q")["p.q"]
    yield "three '#'", server.bind("p.x", "p.q", "#.#.#")
    server.remove("/exchanges/p.x", "/queues/p.q")


HEADERS = {
    "without x-match": {"a": 1, "b": "x"},
    "all": {"x-match": "all", "a": 1, "b": "x"},
    "any": {"x-match": "any", "a": 1, "b": "x"},
    "all of nothing": {"x-match": "all"},
    "any of nothing": {"x-match": "any"},
    "all, with x-h": {"x-match": "all", "a": 1, "x-h": 1},
    "any, with x-h": {"x-match": "any", "a": 1, "x-h": 1},
    "all-with-x": {"x-match": "all-with-x", "a": 1, "x-h": 1},
    "any-with-x": {"x-match": "any-with-x", "a": 1, "x-h": 1},
    "presence": {"x-match": "all", "a": None},
    "a text": {"x-match": "all", "a": "1"},
    "a float": {"x-match": "all", "a": 1.0},
    "a boolean": {"x-match": "all", "a": True},
    "an int": {"x-match": "all", "a": int32(1)},
}
SENT = {
    "nothing": {},
    "a": {"a": 1},
    "a, b": {"a": 1, "b": "x"},
    "a, b and more": {"a": 1, "b": "x", "c": 1},
    "another a, b": {"a": 2, "b": "x"},
    "a, x-h": {"a": 1, "x-h": 1},
    "x-h": {"x-h": 1},
    "a as text": {"a": "1"},
    "a as float": {"a": 1.0},
    "a as boolean": {"a": True},
    "a as ulong": {"a": ulong(1)},
    "a as symbol": {"a": symbol("1")},
    "A": {"A": 1},
}


@program
def headers_exchange(server):
    """Which messages the arguments of each binding take."""
    server.exchange("p.x", "headers")
    queues = {label: f"p.h{number}" for number, label in enumerate(HEADERS)}
    for label, queue in queues.items():
        server.queue(queue, x_queue_type="classic")
        binding = {"source": "p.x", "destination_queue": queue, "binding_key": "", "arguments": HEADERS[label]}
        yield f"bind {label}", server.ask("POST", "/bindings", binding)
    sent = [{"body": label.encode(), "application_properties": properties} for label, properties in SENT.items()]
    sent.append({"body": b"x-h as annotation", "annotations": {symbol("x-h"): 1}})
    sent.append({"body": b"a, x-h as annotation", "application_properties": {"a": 1}, "annotations": {symbol("x-h"): 1}})
    yield "outcomes", server.publish_all({"address": "/exchanges/p.x/k", **one} for one in sent)
    arrived = server.arrived(*queues.values())
    for label, queue in queues.items():
        yield label, arrived[queue]
    server.remove("/exchanges/p.x", *(f"/queues/{queue}" for queue in queues.values()))


@program
def alternate_exchange(server):
    """An alternate exchange by argument."""
    server.exchange("p.alt", "fanout")
    server.queue("p.q")
    server.queue("p.unrouted")
    server.bind("p.alt", "p.unrouted")
    yield "declare", server.exchange("p.x", "direct", alternate_exchange="p.alt")
    yield "declare again", server.exchange("p.x", "direct", alternate_exchange="p.alt")
    yield "declare with another", server.exchange("p.x", "direct", alternate_exchange="p.other")
    yield "declare without", server.exchange("p.x", "direct")
    yield "declare with a number", server.exchange("p.w", "direct", alternate_exchange=5)
    server.bind("p.x", "p.q", "k")
    yield "what fits", [server.publish("/exchanges/p.x/k", b"fits", durable=True), server.take("p.q", "accepted")]
    yield "the rest", [server.publish("/exchanges/p.x/o", b"rest", durable=True), server.take("p.unrouted", "accepted")]
    server.exchange("p.first", "direct", alternate_exchange="p.x")
    yield "behind two", [server.publish("/exchanges/p.first/o", b"two", durable=True), server.take("p.unrouted", "accepted")]
    yield "in the middle", [server.publish("/exchanges/p.first/k", b"middle", durable=True), server.take("p.q", "accepted")]
    server.remove("/exchanges/p.alt")
    yield "an alternate that is gone", server.publish("/exchanges/p.x/o", durable=True)
    server.exchange("p.alt", "direct", alternate_exchange="p.x")
    yield "in a circle", server.publish("/exchanges/p.x/o", durable=True)
    server.remove(*(f"/exchanges/p.{name}" for name in ("alt", "x", "w", "first")), "/queues/p.q", "/queues/p.unrouted")


@program
def exchanges_behind_exchanges(server):
    """Exchanges that are bound to exchanges."""
    for name, kind in {"p.a": "topic", "p.b": "direct", "p.c": "fanout"}.items():
        server.exchange(name, kind)
    server.queue("p.q")
    server.bind("p.c", "p.q")
    yield "bind", server.bind_exchange("p.a", "p.b", "k.#")
    yield "bind again", server.bind_exchange("p.a", "p.b", "k.#")
    yield "bind the next", server.bind_exchange("p.b", "p.c", "k.1")
    yield "to one that is not there", server.bind_exchange("p.a", "p.none")
    yield "from one that is not there", server.bind_exchange("p.none", "p.a")
    yield "to the default one", server.bind_exchange("p.a", "")
    yield "from the default one", server.bind_exchange("", "p.a")
    yield "to the predeclared one", server.bind_exchange("p.a", "amq.fanout", "never")
    yield "list", server.ask("GET", "/bindings?src=p.a&dste=p.b&key=k.%23")
    yield "list as if it were a queue", server.ask("GET", "/bindings?src=p.a&dstq=p.b&key=k.%23")
    fits = server.publish("/exchanges/p.a/k.1", b"fits", durable=True)
    yield "by all three", [fits, server.take("p.q", "accepted")]
    yield "not by the second", server.publish("/exchanges/p.a/k.2", durable=True)
    yield "not by the first", server.publish("/exchanges/p.a/other", durable=True)
    yield "a circle", server.bind_exchange("p.c", "p.a")
    server.bind("p.a", "p.q", "#")
    server.publish("/exchanges/p.a/k.1", b"once", durable=True)
    yield "once for all ways", [server.comes_to("p.q", 1), bodies(server.take("p.q", "accepted"))]
    yield "bind to itself", server.bind_exchange("p.b", "p.b", "k")
    yield "without a queue", server.publish("/exchanges/p.b/k", durable=True)
    yield "unbind as if it were a queue", server.ask("DELETE", "/bindings/src=p.a;dstq=p.b;key=k.%23;args=")
    yield "unbind", server.ask("DELETE", "/bindings/src=p.a;dste=p.b;key=k.%23;args=")
    yield "unbind again", server.ask("DELETE", "/bindings/src=p.a;dste=p.b;key=k.%23;args=")
    yield "delete the destination", server.ask("DELETE", "/exchanges/p.c")
    yield "list what it had", server.ask("GET", "/bindings?src=p.b&dste=p.c&key=k.1")
    yield "after that", server.publish("/exchanges/p.b/k.1", durable=True)
    server.remove("/exchanges/p.a", "/exchanges/p.b", "/queues/p.q")


@program
def further_keys(server):
    """The annotations `x-cc` and `x-bcc`."""
    server.exchange("p.x", "direct")
    queues = ["p.key", "p.cc", "p.bcc"]
    for queue in queues:
        server.queue(queue, x_queue_type="classic")
        server.bind("p.x", queue, queue)
    for label, annotations in {
        "x-cc": {"x-cc": ["p.cc", "p.none"]},
        "x-cc to the same": {"x-cc": ["p.key"]},
        "x-cc of no strings": {"x-cc": [1]},
        "x-cc that is no list": {"x-cc": "p.cc"},
        "x-bcc": {"x-bcc": ["p.bcc"]},
    }.items():
        annotations = {symbol(name): one for name, one in annotations.items()}
        yield f"{label}: outcome", server.publish("/exchanges/p.x/p.key", label.encode(), annotations=annotations)
        yield f"{label}: queues", [queue for queue, came in server.arrived(*queues).items() if came]
        for queue in queues:
            server.ask("DELETE", f"/queues/{queue}/messages")
    annotations = {symbol("x-cc"): ["p.cc"]}
    yield "nothing by the key", server.publish("/exchanges/p.x/none", annotations=annotations)
    yield "what comes", server.take("p.cc", "accepted")
    server.remove("/exchanges/p.x", *(f"/queues/{queue}" for queue in queues))


@program
def exchange_flags(server):
    """Exchanges that go with their last binding, and exchanges for other exchanges alone."""
    server.queue("p.q")
    flags = {"type": "fanout", "durable": True, "auto_delete": True}
    yield "declare", server.ask("PUT", "/exchanges/p.auto", flags)
    yield "declare without the flag", server.ask("PUT", "/exchanges/p.auto", {**flags, "auto_delete": False})
    yield "before a binding", server.publish("/exchanges/p.auto/k", durable=True)
    server.bind("p.auto", "p.q", "1")
    server.bind("p.auto", "p.q", "2")
    server.remove("/bindings/src=p.auto;dstq=p.q;key=1;args=")
    yield "with one binding", server.publish("/exchanges/p.auto/k", durable=True)
    server.remove("/bindings/src=p.auto;dstq=p.q;key=2;args=")
    yield "after the last binding", server.publish("/exchanges/p.auto/k", durable=True)
    server.ask("PUT", "/exchanges/p.auto", flags)
    server.bind("p.auto", "p.q")
    server.remove("/queues/p.q")
    yield "after the last queue", server.publish("/exchanges/p.auto/k", durable=True)
    server.queue("p.q")
    inner = {"type": "fanout", "durable": True, "internal": True}
    yield "declare an internal one", server.ask("PUT", "/exchanges/p.inner", inner)
    server.bind("p.inner", "p.q")
    yield "publish to it", server.publish("/exchanges/p.inner/k", durable=True)
    yield "publish to it by the message", server.publish(None, address="/exchanges/p.inner/k", durable=True)
    server.exchange("p.x", "fanout")
    server.bind_exchange("p.x", "p.inner")
    yield "through another", server.publish("/exchanges/p.x/k", durable=True)
    server.remove("/exchanges/p.x", "/exchanges/p.inner", "/exchanges/p.auto", "/queues/p.q")
