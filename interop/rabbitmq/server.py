"""A server that speaks RabbitMQ's dialect, as the programs of `programs.py` use it: its management pair, its HTTP
interface, publishers and consumers. What comes back is plain data that can be compared and kept as JSON."""

import ast
import contextlib
import re
import time
import uuid

import requests
from rabbitmq_amqp_python_client import Delivery, Environment, Message
from rabbitmq_amqp_python_client.options import ReceiverOptionUnsettled, SenderOptionUnseattle
from rabbitmq_amqp_python_client.qpid.proton._data import Array, PropertyDict, symbol, timestamp
from rabbitmq_amqp_python_client.qpid.proton._exceptions import LinkException, ProtonException, Timeout
from rabbitmq_amqp_python_client.qpid.proton.reactor import LinkOption

OUTCOMES = {Delivery.ACCEPTED: "accepted", Delivery.REJECTED: "rejected", Delivery.RELEASED: "released"}
# A server has this long for what takes it a moment.
PATIENCE = 5
# RabbitMQ shows the policies of a queue with its next statistics.
STATISTICS = 20


class Priority(LinkOption):
    """That of a consumer."""

    def __init__(self, priority):
        self.priority = priority

    def apply(self, link):
        if self.priority is not None:
            link.properties = PropertyDict({symbol("rabbitmq:priority"): self.priority})


class SessionEnded(Exception):
    def __init__(self, condition):
        super().__init__(condition.description)
        self.condition, self.description = condition.name, condition.description


class Server:
    def __init__(self, host, port, http_port):
        self.api = f"http://{host}:{http_port}/api"
        self.environment = Environment(uri=f"amqp://guest:guest@{host}:{port}/")
        self.open_management()

    def open_management(self):
        self.management_connection = self.connect()
        self.management = self.management_connection.management()

    def connect(self):
        connection = self.environment.connection()
        connection.dial()
        return connection

    def close(self):
        # A connection whose link was detached may not close in order.
        with contextlib.suppress(Exception):
            self.environment.close()

    def ask(self, method, path, body=None):
        """The status and the body of a response over the management pair, or that there is none any more. The
        client's own requests raise some of them."""
        name = str(uuid.uuid4())
        fields = {"inferred": False, "reply_to": "$me", "durable": False}
        try:
            self.management._sender.send(Message(id=name, body=body, address=path, subject=method, **fields))
            answer = self.management._receiver.receive(timeout=PATIENCE)
        except ProtonException:
            self.open_management()
            return "no answer"
        assert answer.correlation_id == name
        shown = plain(answer.body)
        if isinstance(shown, dict) and "leader" in shown:
            # Each server calls its node by a name of its own.
            node = shown["leader"]
            shown["leader"], shown["replicas"] = "node", ["node" if one == node else one for one in shown["replicas"]]
        return [int(answer.subject), shown]

    def http(self, method, path, body=None):
        """The status and the body of an answer over HTTP."""
        answer = requests.request(method, self.api + path, json=body, auth=("guest", "guest"), timeout=PATIENCE)
        return [answer.status_code, answer.json() if answer.content else None]

    def location(self, path, body):
        """The status of a POST over HTTP, and where what it made is."""
        answer = requests.post(self.api + path, json=body, auth=("guest", "guest"), timeout=PATIENCE)
        return [answer.status_code, answer.headers.get("Location")]

    def http_fields(self, path, names):
        """Only those fields of a description, or of each in a list, which is in the order of their names."""
        status, answer = self.http("GET", path)
        chosen = [{name: one[name] for name in names} for one in (answer if isinstance(answer, list) else [answer])]
        return [status, sorted(chosen, key=lambda one: one["name"])]

    def policed(self, queue, user, operator):
        """The definition that is in force for a queue, once HTTP shows these policies or time is up."""
        until = time.monotonic() + STATISTICS
        while True:
            found = self.http("GET", f"/queues/%2F/{queue}")[1]
            shown = [found.get(name) or None for name in ("policy", "operator_policy", "effective_policy_definition")]
            if shown[:2] == [user, operator] or time.monotonic() > until:
                return shown
            time.sleep(0.2)

    def queue(self, name, **arguments):
        """Makes a quorum queue, or another."""
        arguments = {"x-queue-type": "quorum", **{key.replace("_", "-"): value for key, value in arguments.items()}}
        return self.ask("PUT", f"/queues/{name}", {"durable": True, "arguments": arguments})

    def exchange(self, name, kind, **arguments):
        arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
        return self.ask("PUT", f"/exchanges/{name}", {"type": kind, "durable": True, "arguments": arguments})

    def bind(self, source, queue, key="", **arguments):
        arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
        binding = {"source": source, "destination_queue": queue, "binding_key": key, "arguments": arguments}
        return self.ask("POST", "/bindings", binding)

    def bind_exchange(self, source, destination, key=""):
        binding = {"source": source, "destination_exchange": destination, "binding_key": key, "arguments": {}}
        return self.ask("POST", "/bindings", binding)

    def remove(self, *paths):
        for path in paths:
            self.ask("DELETE", path)

    @contextlib.contextmanager
    def link(self, make):
        connection = self.connect()
        connection._conn.timeout = PATIENCE
        try:
            yield make(connection._conn)
        except Timeout:
            # Proton does not say so when a session ends.
            session = connection._conn.conn.session_head(0)
            condition = session.remote_condition if session else None
            if not condition:
                raise
            raise SessionEnded(condition) from None
        finally:
            with contextlib.suppress(Exception):
                connection.close()

    def publish(self, address, body=b"body", /, **fields):
        """The outcome, with its error if it has one; or the error with which the link is detached."""
        message = Message(body=body, inferred=True, **fields)
        try:
            with self.link(lambda it: it.create_sender(address, options=SenderOptionUnseattle(address or ""))) as sender:
                delivery = sender.send(message, error_states=[])
        except (LinkException, SessionEnded) as error:
            return refused(error)
        condition = delivery.remote.condition
        outcome = OUTCOMES[delivery.remote_state]
        return [outcome, condition.name, condition.description] if condition else outcome

    def publish_all(self, messages):
        """The outcomes of messages that name their addresses, in their order."""
        with self.link(lambda it: it.create_sender(None, options=SenderOptionUnseattle(""))) as sender:
            sent = [sender.send(Message(inferred=True, **fields), error_states=[]) for fields in messages]
        return [OUTCOMES[delivery.remote_state] for delivery in sent]

    def consumer(self, queue):
        address = f"/queues/{queue}"
        return self.link(lambda it: it.create_receiver(address, credit=10, options=ReceiverOptionUnsettled(address)))

    @contextlib.contextmanager
    def frugal_consumer(self, queue, credit, priority=None):
        """A consumer that gives no credit but this and what it is told to, and what has come is taken by `held`."""
        address = f"/queues/{queue}"
        options = [ReceiverOptionUnsettled(address), Priority(priority)]
        with self.link(lambda it: it.create_receiver(address, credit=0, options=options)) as receiver:
            give_credit(receiver, credit)
            yield receiver

    def attach_consumer(self, queue):
        """`attached`, or the error with which the link is detached."""
        try:
            with self.consumer(queue):
                return "attached"
        except (LinkException, SessionEnded) as error:
            return refused(error)

    def take(self, queue, *actions):
        """Consumes a message for each action and does that; returns the messages as data."""
        try:
            with self.consumer(queue) as receiver:
                return [self.take_one(receiver, action) for action in actions]
        except (LinkException, SessionEnded) as error:
            return refused(error)

    def take_one(self, receiver, action):
        try:
            message = receiver.receive(timeout=PATIENCE)
        except Timeout:
            return "nothing"
        except LinkException as error:
            return refused(error)
        settle(receiver, action)
        return shown(message)

    def arrived(self, *queues):
        """For each of some classic queues the bodies in it, which go back to it."""
        with self.link(lambda it: it) as connection:
            return {queue: self.bodies_in(connection, queue) for queue in queues}

    def bodies_in(self, connection, queue):
        count = int(self.ask("GET", f"/queues/{queue}")[1]["message_count"].removeprefix("ulong "))
        address = f"/queues/{queue}"
        receiver = connection.create_receiver(address, credit=count, options=ReceiverOptionUnsettled(address))
        # A body lives as long as its message.
        messages = [receiver.receive(timeout=PATIENCE) for _ in range(count)]
        return [bytes(message.body).decode() for message in messages]

    def is_empty(self, queue):
        """Whether a queue has no available message, once it has none or time is up."""
        return self.comes_to(queue, 0)

    def comes_to(self, queue, count):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.ask("GET", f"/queues/{queue}")[1]["message_count"] == f"ulong {count}":
                return True
            time.sleep(0.1)
        return False


    def which_has_one(self, *queues):
        """The first of some queues to have one available message."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for queue in queues:
                if self.ask("GET", f"/queues/{queue}")[1]["message_count"] == "ulong 1":
                    return queue
            time.sleep(0.1)
        return None


def give_credit(receiver, credit):
    receiver.link.flow(credit)
    # It is on its way before anything is published.
    with contextlib.suppress(Timeout):
        receiver.connection.wait(lambda: False, timeout=0.3)


def held(receiver):
    """The text of the next message."""
    receiver.connection.wait(lambda: receiver.fetcher.has_message, timeout=PATIENCE)
    message = receiver.fetcher.pop()
    return bytes(message.body).decode()


def settle(receiver, action):
    """An action is the name of an outcome, or what a `modified` says."""
    delivery = receiver.fetcher.unsettled.popleft()
    if isinstance(action, dict):
        for field, value in action.items():
            setattr(delivery.local, field, value)
        action = "modified"
    delivery.update(getattr(Delivery, action.upper()))
    delivery.settle()
    # The disposition is on its way before the connection closes.
    with contextlib.suppress(Timeout):
        receiver.connection.wait(lambda: False, timeout=0.2)


def refused(error):
    if isinstance(error, SessionEnded):
        return ["session ended", error.condition, error.description]
    # Proton tells the description of a detached link in the text of the error alone.
    found = re.search(r"Condition\((.*)\)$", str(error))
    return ["detached", *(ast.literal_eval(f"({found[1]},)") if found else [])]


def shown(message):
    return {
        "body": plain(message.body),
        "delivery-count": message.delivery_count,
        "first-acquirer": message.first_acquirer,
        "durable": message.durable,
        "ttl": message.ttl,
        "annotations": plain(message.annotations),
    }


def plain(value):
    """AMQP values with their types, as JSON can have them. A moment is no more than that."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in sorted(value.items())}
    if isinstance(value, Array):
        return ["array", *(plain(one) for one in value.elements)]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, timestamp):
        return "timestamp"
    if isinstance(value, symbol):
        return f"symbol {value}"
    if isinstance(value, (bytes, memoryview)):
        return f"binary {bytes(value).decode('latin-1')}"
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return f"{'long' if type(value) is int else type(value).__name__} {int(value)}"
    return f"{type(value).__name__} {value}"
