"""A connection of RabbitMQ's client, a consumer that takes a number of messages, and a queue that goes with its
test."""

import contextlib
import os
import uuid

from rabbitmq_amqp_python_client import AddressHelper, AMQPMessagingHandler, Environment, Message


def uri(user="guest", password="guest"):
    return f"amqp://{user}:{password}@{os.environ['RAILBUS_HOST']}:{os.environ['RAILBUS_PORT']}/"


def connect(environment):
    connection = environment.connection()
    connection.dial()
    return connection


def message(body=b"body", **fields):
    return Message(body=body, inferred=True, **fields)


def fresh(name):
    return f"rabbitmq-{name}-{uuid.uuid4()}"


class Done(Exception):
    """All messages have come."""


class Taker(AMQPMessagingHandler):
    """Does the next of some actions with each message, and stops after the last of them."""

    def __init__(self, actions):
        super().__init__()
        self.actions = list(actions)
        self.messages = []

    def on_amqp_message(self, event):
        if not self.actions:
            return self.delivery_context.requeue(event)
        self.messages.append(event.message)
        getattr(self.delivery_context, self.actions.pop(0))(event)
        if not self.actions:
            raise Done


def take(queue, *actions):
    """Consumes with a connection of its own; returns the messages, one for each action."""
    environment = Environment(uri=uri())
    connection = connect(environment)
    taker = Taker(actions)
    consumer = connection.consumer(AddressHelper.queue_address(queue), message_handler=taker)
    # A stopped container would not close links any more.
    with contextlib.suppress(Done):
        consumer.run()
    environment.close()
    return taker.messages
