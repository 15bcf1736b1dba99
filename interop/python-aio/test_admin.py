"""`azure.servicebus.aio.management`: queues, topics, subscriptions and rules by the administration client.

It speaks HTTPS with a broker of the test's own, whose certificate authority is all that it is told to trust.
"""

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.management import CorrelationRuleFilter, SqlRuleAction, SqlRuleFilter, TrueRuleFilter

from support import message
from virtual_clock import Broker

# What clock.json has.
CONFIGURED = 12


@pytest.fixture
def namespace(tmp_path):
    with Broker(options=["--tls-dir", str(tmp_path / "tls")]) as broker:
        broker.authority = str(tmp_path / "tls" / "ca.pem")
        yield broker


def administer(namespace, text=None):
    text = text or namespace.connection_string
    return ServiceBusAdministrationClient.from_connection_string(text, connection_verify=namespace.authority)


async def names(listed):
    return [one.name async for one in listed]


async def test_a_queue_is_created_read_listed_updated_and_deleted(namespace):
    async with administer(namespace) as admin:
        created = await admin.create_queue("jobs", lock_duration=timedelta(seconds=13), max_delivery_count=17)
        assert (created.lock_duration, created.max_delivery_count) == (timedelta(seconds=13), 17)
        found = await admin.get_queue("jobs")
        assert (found.name, found.lock_duration, found.max_delivery_count) == ("jobs", timedelta(seconds=13), 17)
        assert "jobs" in await names(admin.list_queues())
        found.lock_duration, found.user_metadata = timedelta(seconds=14), 'a <b> & "c" ä'
        await admin.update_queue(found)
        found = await admin.get_queue("jobs")
        assert (found.lock_duration, found.user_metadata) == (timedelta(seconds=14), 'a <b> & "c" ä')
        # One that is not given stays.
        assert found.max_delivery_count == 17
        await admin.delete_queue("jobs")
        assert "jobs" not in await names(admin.list_queues())
        with pytest.raises(ResourceNotFoundError):
            await admin.get_queue("jobs")


async def test_a_topic_and_its_subscription_are_created_read_listed_updated_and_deleted(namespace):
    async with administer(namespace) as admin:
        await admin.create_topic("events", default_message_time_to_live=timedelta(hours=1))
        topic = await admin.get_topic("events")
        assert (topic.name, topic.default_message_time_to_live) == ("events", timedelta(hours=1))
        topic.default_message_time_to_live = timedelta(hours=2)
        await admin.update_topic(topic)
        assert (await admin.get_topic("events")).default_message_time_to_live == timedelta(hours=2)
        assert await names(admin.list_topics()) == ["events"]

        await admin.create_subscription("events", "all", max_delivery_count=4)
        subscription = await admin.get_subscription("events", "all")
        assert (subscription.name, subscription.max_delivery_count) == ("all", 4)
        subscription.max_delivery_count = 5
        await admin.update_subscription("events", subscription)
        assert (await admin.get_subscription("events", "all")).max_delivery_count == 5
        assert await names(admin.list_subscriptions("events")) == ["all"]

        await admin.delete_subscription("events", "all")
        assert await names(admin.list_subscriptions("events")) == []
        await admin.delete_topic("events")
        assert await names(admin.list_topics()) == []


async def test_a_rule_is_created_read_listed_updated_and_deleted(namespace):
    place = "events", "all"
    async with administer(namespace) as admin:
        await admin.create_topic("events")
        await admin.create_subscription(*place)
        [default] = [one async for one in admin.list_rules(*place)]
        assert (default.name, type(default.filter)) == ("$Default", TrueRuleFilter)
        by_colour = SqlRuleFilter("colour = @c", {"@c": "red"})
        await admin.create_rule(*place, "red", filter=by_colour, action=SqlRuleAction("SET seen = 1"))
        rule = await admin.get_rule(*place, "red")
        assert (rule.filter.sql_expression, rule.filter.parameters) == ("colour = @c", {"@c": "red"})
        assert rule.action.sql_expression == "SET seen = 1"
        rule.filter, rule.action = CorrelationRuleFilter(label="red", properties={"size": 5}), None
        await admin.update_rule(*place, rule)
        rule = await admin.get_rule(*place, "red")
        assert (rule.filter.label, rule.filter.properties, rule.action) == ("red", {"size": 5}, None)
        await admin.delete_rule(*place, "$Default")
        assert await names(admin.list_rules(*place)) == ["red"]


async def test_lists_have_every_name_once(namespace):
    made = [f"many-{number:03}" for number in range(120)]
    async with administer(namespace) as admin:
        await asyncio.gather(*(admin.create_queue(name) for name in made))
        listed = await names(admin.list_queues())
        assert [name for name in listed if name.startswith("many-")] == made
        assert len(listed) == len(set(listed)) == len(made) + CONFIGURED


async def test_runtime_properties_are_those_of_the_moment(namespace):
    program = ServiceBusClient.from_connection_string(namespace.connection_string)
    async with administer(namespace) as admin, program:
        await admin.create_queue("jobs")
        await admin.create_topic("events")
        await admin.create_subscription("events", "all")
        async with program.get_queue_sender("jobs") as sender:
            await sender.send_messages([message("one"), message("two")])
            await sender.schedule_messages(message("later"), datetime.now(timezone.utc) + timedelta(hours=1))
        async with program.get_topic_sender("events") as sender:
            await sender.send_messages(message("told"))
        queue = await admin.get_queue_runtime_properties("jobs")
        counts = queue.active_message_count, queue.scheduled_message_count, queue.total_message_count
        assert counts == (2, 1, 3)
        assert queue.size_in_bytes > 0
        assert queue.created_at_utc <= queue.updated_at_utc <= queue.accessed_at_utc
        assert (await admin.get_topic_runtime_properties("events")).subscription_count == 1
        subscription = await admin.get_subscription_runtime_properties("events", "all")
        assert (subscription.active_message_count, subscription.total_message_count) == (1, 1)
        listed = [one async for one in admin.list_queues_runtime_properties() if one.name == "jobs"]
        assert [one.total_message_count for one in listed] == [3]


async def test_of_many_who_create_the_same_one_succeeds(namespace):
    async with administer(namespace) as admin:
        tried = await asyncio.gather(*(admin.create_queue("race") for _ in range(8)), return_exceptions=True)
        assert [type(one) for one in tried].count(ResourceExistsError) == 7
        assert [one.name for one in tried if not isinstance(one, Exception)] == ["race"]


async def test_what_is_missing_is_not_found(namespace):
    async with administer(namespace) as admin:
        await admin.create_topic("events")
        await admin.create_subscription("events", "all")
        for missing in (
            admin.get_queue("missing"),
            admin.get_queue_runtime_properties("missing"),
            admin.delete_queue("missing"),
            admin.get_topic("missing"),
            admin.delete_topic("missing"),
            admin.create_subscription("missing", "all"),
            admin.get_subscription("events", "missing"),
            admin.delete_subscription("events", "missing"),
            admin.create_rule("events", "missing", "red"),
            admin.get_rule("events", "all", "missing"),
            admin.delete_rule("events", "all", "missing"),
        ):
            with pytest.raises(ResourceNotFoundError):
                await missing


async def test_what_exists_is_not_created_again(namespace):
    async with administer(namespace) as admin:
        await admin.create_topic("events")
        await admin.create_subscription("events", "all")
        for existing in (
            admin.create_queue("orders"),
            admin.create_topic("orders"),
            admin.create_topic("events"),
            admin.create_subscription("events", "all"),
            admin.create_rule("events", "all", "$Default"),
        ):
            with pytest.raises(ResourceExistsError):
                await existing


async def test_what_is_wrong_is_refused_and_makes_nothing(namespace):
    async with administer(namespace) as admin:
        for name in ("a b", "a!b", "a//b", "$a", "a" * 261):
            with pytest.raises(HttpResponseError) as refused:
                await admin.create_queue(name)
            assert refused.value.status_code == 400, name
            with pytest.raises(ResourceNotFoundError):
                await admin.get_queue(name)
        with pytest.raises(HttpResponseError) as refused:
            await admin.create_queue("jobs", lock_duration=timedelta(minutes=6))
        assert refused.value.status_code == 400
        orders = await admin.get_queue("orders")
        orders.requires_session = True
        with pytest.raises(HttpResponseError, match="RequiresSession"):
            await admin.update_queue(orders)
        assert not (await admin.get_queue("orders")).requires_session
        assert len(await names(admin.list_queues())) == CONFIGURED


async def test_a_wrong_key_is_an_authentication_error_of_management(namespace):
    text = namespace.connection_string.replace("AccessKey=", "AccessKey=wrong")
    async with administer(namespace, text) as stranger:
        with pytest.raises(ClientAuthenticationError):
            await stranger.create_queue("jobs")
    async with administer(namespace) as admin:
        assert "jobs" not in await names(admin.list_queues())
