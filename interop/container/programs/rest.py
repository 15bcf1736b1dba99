"""What a user of azure-servicebus 0.21.1, a library over REST, writes. The argument names a function here; what it
has seen is printed as JSON."""

import json
import os
import sys

from azure.common import AzureHttpError
from azure.servicebus import Message, Queue, Rule, ServiceBusService

STRING = dict(part.split("=", 1) for part in os.environ["RAILBUS_CONNECTION_STRING"].split(";") if part)


def connect(key=STRING["SharedAccessKey"]):
    namespace, _, _ = STRING["Endpoint"].removeprefix("sb://").partition(".")
    return ServiceBusService(
        namespace, shared_access_key_name=STRING["SharedAccessKeyName"], shared_access_key_value=key)


def queue():
    service = connect()
    created = service.create_queue("orders", Queue(lock_duration="PT30S", max_delivery_count=2))
    again = service.create_queue("orders")
    shown = service.get_queue("orders")
    listed = [it.name for it in service.list_queues() if it.name == "orders"]
    service.send_queue_message("orders", Message(
        b"by REST", type="text/plain", custom_properties={"color": "red", "size": 3}, broker_properties={"Label": "new"}))
    locked = service.receive_queue_message("orders", timeout=30)
    locked.renew_lock()
    locked.unlock()
    unlocked = service.receive_queue_message("orders", timeout=30)
    unlocked.delete()
    left = service.get_queue("orders").message_count
    service.delete_queue("orders", fail_not_exist=True)
    return {
        "created": [created, again], "listed": listed,
        "settings": [shown.lock_duration, shown.max_delivery_count],
        "message": [locked.body.decode(), locked.type, locked.broker_properties["Label"],
                    locked.custom_properties["color"], locked.custom_properties["size"]],
        "deliveries": [it.broker_properties["DeliveryCount"] for it in (locked, unlocked)],
        "left": left, "gone": "orders" not in [it.name for it in service.list_queues()],
    }


def topic():
    service = connect()
    service.create_topic("prices", fail_on_exist=True)
    service.create_subscription("prices", "cheap", fail_on_exist=True)
    service.create_rule("prices", "cheap", "low", Rule(filter_type="SqlFilter", filter_expression="price < 10"), True)
    service.delete_rule("prices", "cheap", "$Default", True)
    for price in (50, 5):
        service.send_topic_message("prices", Message(str(price).encode(), custom_properties={"price": price}))
    received = service.receive_subscription_message("prices", "cheap", timeout=30)
    received.delete()
    seen = {
        "rules": [[it.name, it.filter_expression] for it in service.list_rules("prices", "cheap")],
        "subscriptions": [it.name for it in service.list_subscriptions("prices")],
        "received": received.body.decode(), "left": service.get_subscription("prices", "cheap").message_count,
    }
    service.delete_subscription("prices", "cheap", fail_not_exist=True)
    service.delete_topic("prices", fail_not_exist=True)
    return seen


def refused():
    service = connect()
    attempts = {
        "missing": lambda: service.delete_queue("missing", fail_not_exist=True),
        "name": lambda: service.create_queue("a b", fail_on_exist=True),
        "key": lambda: connect("wrong").list_queues(),
    }
    return {name: status(attempt) for name, attempt in attempts.items()}


def status(attempt):
    try:
        attempt()
    except AzureHttpError as error:
        return error.status_code


def send():
    connect().send_queue_message("orders", Message(b"by REST", broker_properties={"Label": "new"}))


def receive():
    received = connect().receive_queue_message("orders", timeout=30)
    received.delete()
    return [received.body.decode(), received.broker_properties["Label"]]


print(json.dumps(globals()[sys.argv[1]]()))
