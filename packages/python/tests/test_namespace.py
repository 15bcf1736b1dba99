"""What a namespace of this package promises. Run against the installed wheel."""

from datetime import timedelta

import pytest
from railbus import BrokerError
from railbus.namespace import request

ORDERS = {"queues": [{"name": "orders"}]}


@pytest.fixture(scope="session")
def railbus_entities():
    return ORDERS


def codes(namespace, **options):
    return [reason["code"] for reason in namespace.explain("orders", **options)["reasons"]]


def test_a_namespace_has_the_entities_of_the_broker(railbus_namespace):
    assert "SharedAccessKeyName=" + railbus_namespace.name in railbus_namespace.connection_string
    assert codes(railbus_namespace) == ["empty"]


def test_a_namespace_that_is_left_is_gone(railbus):
    with railbus.create_namespace("left") as namespace:
        pass
    with pytest.raises(BrokerError, match="left"):
        namespace.reset()


def test_an_empty_namespace_has_no_entities(railbus):
    with railbus.create_namespace(like=None) as namespace:
        with pytest.raises(BrokerError, match="the entity does not exist"):
            namespace.explain("orders")


def test_fault_rules_are_those_of_the_namespace(railbus, railbus_namespace):
    railbus_namespace.fault("busy", {"refuse": "server-busy"}, entity="orders", message_id="7", times=1)
    with railbus.create_namespace() as other:
        assert other.faults() == []
    (rule,) = railbus_namespace.faults()
    assert rule["name"] == "busy" and rule["match"]["message-id"] == "7"
    railbus_namespace.clear_faults()
    assert railbus_namespace.faults() == []
    railbus_namespace.fault("again", "deliver-again")
    railbus_namespace.reset()
    assert railbus_namespace.faults() == []


def test_time_passes_in_one_namespace_alone(railbus, railbus_namespace):
    assert railbus_namespace.advance(timedelta(days=1))["offset"] == "PT24H"
    with railbus.create_namespace() as other:
        assert other.advance("PT1H")["offset"] == "PT1H"
    assert railbus_namespace.advance("PT0S")["offset"] == "PT24H"


def test_a_namespace_goes_back_to_what_was_kept(railbus_namespace):
    def reason():
        return railbus_namespace.explain("orders")["reasons"][0]["code"]

    host = {"Host": f"{railbus_namespace.name}.localhost"}
    request(railbus_namespace.address, "POST", "entities/orders/messages", {"body": "kept"}, host)
    assert railbus_namespace.snapshot()["messages"] == 1
    for _ in range(2):
        railbus_namespace.reset()
        assert reason() == "empty"
        railbus_namespace.restore()
        assert reason() == "no-receiver"
    with pytest.raises(BrokerError, match="already"):
        railbus_namespace.snapshot()
    with pytest.raises(BrokerError, match="no snapshot 'gone'"):
        railbus_namespace.restore("gone")


def test_what_is_refused_is_an_error(railbus, railbus_namespace):
    with pytest.raises(BrokerError, match="a/b"):
        railbus.create_namespace("a/b")
    with pytest.raises(BrokerError, match="exists already"):
        railbus.create_namespace(railbus_namespace.name)
    with pytest.raises(BrokerError, match="nowhere"):
        railbus.create_namespace(like="nowhere")
    with pytest.raises(BrokerError, match="explode"):
        railbus_namespace.fault("worst", "explode")
