"""kombu over its `azureservicebus` transport: producers, consumers, and what becomes of messages nobody acknowledged."""

import pytest
from azure.core.exceptions import ClientAuthenticationError
from kombu import Connection, Consumer, Exchange, Producer, Queue

from support import administer, connect, eventually, peek

# The shortest lock that Service Bus has.
OPTIONS = {"peek_lock_seconds": 5, "wait_time_seconds": 1}


@pytest.fixture
def url(namespace):
    return namespace.kombu_url()


@pytest.fixture
def connection(url):
    with Connection(url, transport_options=OPTIONS) as connection:
        yield connection


@pytest.fixture(scope="module")
def client(namespace):
    with connect(namespace.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def administration(namespace):
    with administer(namespace.connection_string) as administration:
        yield administration


class Inbox:
    """A consumer that keeps what it is given, and does with it what the test says."""

    def __init__(self, connection, *queues, on_message=lambda message: message.ack()):
        self.connection = connection
        self.received = []
        self.on_message = on_message
        self.consumer = Consumer(connection, queues=queues, callbacks=[self.take])

    def take(self, body, message):
        self.received.append(body)
        self.on_message(message)

    def wait_for(self, count):
        def enough():
            try:
                self.connection.drain_events(timeout=1)
            except TimeoutError:
                pass
            return len(self.received) >= count

        with self.consumer:
            eventually(enough, f"arrival of {count} messages")
        return self.received


def publish(connection, queue, *bodies):
    producer = Producer(connection)
    for body in bodies:
        producer.publish(body, routing_key=queue.routing_key, exchange=queue.exchange, declare=[queue])


def direct(name):
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


def test_a_message_is_published_and_acknowledged(connection, client, fresh):
    queue = direct(fresh("kombu"))
    publish(connection, queue, {"order": 1}, {"order": 2})
    assert Inbox(connection, queue).wait_for(2) == [{"order": 1}, {"order": 2}]
    assert peek(client, queue.name) == []
    queue(connection).delete()


def test_a_queue_is_made_when_it_is_declared_and_removed_when_it_is_deleted(connection, administration, fresh):
    queue = direct(fresh("kombu"))(connection)
    queue.declare()
    properties = administration.get_queue(queue.name)
    assert properties.lock_duration.total_seconds() == 5
    queue.delete()
    assert queue.name not in [one.name for one in administration.list_queues()]


def test_a_message_that_is_not_acknowledged_comes_again(connection, url, client, fresh):
    queue = direct(fresh("kombu"))
    publish(connection, queue, "again")
    with Connection(url, transport_options=OPTIONS) as other:
        assert Inbox(other, queue, on_message=lambda message: None).wait_for(1) == ["again"]
    assert Inbox(connection, queue).wait_for(1) == ["again"]
    assert peek(client, queue.name) == []
    queue(connection).delete()


def test_a_topic_exchange_gives_to_each_queue_that_is_bound(connection, fresh):
    exchange = Exchange(fresh("events"), type="topic")
    orders = Queue(fresh("orders"), exchange, routing_key="order.*")
    everything = Queue(fresh("everything"), exchange, routing_key="#")
    producer = Producer(connection, exchange=exchange)
    for key in ["order.placed", "stock.low"]:
        producer.publish(key, routing_key=key, declare=[orders, everything])
    assert Inbox(connection, orders).wait_for(1) == ["order.placed"]
    assert Inbox(connection, everything).wait_for(2) == ["order.placed", "stock.low"]
    for queue in [orders, everything]:
        queue(connection).delete()


def test_a_simple_queue_counts_gives_and_purges(connection, fresh):
    simple = connection.SimpleQueue(fresh("simple"))
    for number in range(3):
        simple.put({"number": number})
    assert simple.qsize() == 3
    message = simple.get(timeout=30)
    assert message.payload == {"number": 0}
    message.ack()
    assert simple.clear() == 2
    assert simple.qsize() == 0
    simple.queue.delete()
    simple.close()


def test_a_lock_is_renewed_for_as_long_as_the_message_is_worked_on(url, client, fresh):
    queue = direct(fresh("kombu"))
    options = {**OPTIONS, "use_lock_renewal": True}
    held = []
    with Connection(url, transport_options=options) as connection:
        publish(connection, queue, "long")
        Inbox(connection, queue, on_message=held.append).wait_for(1)
        [first] = peek(client, queue.name)
        eventually(lambda: renewed_beyond(client, queue.name, first), "a renewal")
        held[0].ack()
        assert peek(client, queue.name) == []
        queue(connection).delete()


def renewed_beyond(client, name, first):
    """Whether the only message is locked for longer than when it was seen first, without another delivery."""
    [now] = peek(client, name)
    assert now.delivery_count == first.delivery_count
    return now.locked_until_utc > first.locked_until_utc


def test_a_wrong_key_is_refused(namespace, fresh):
    url = namespace.kombu_url(key="WRONG_KEY_VALUE")
    with Connection(url, transport_options={**OPTIONS, "retry_total": 0}) as connection:
        with pytest.raises(ClientAuthenticationError):
            direct(fresh("kombu"))(connection).declare()
