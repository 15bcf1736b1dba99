"""Queues, topics, subscriptions and the namespace by the administration client, every property of them."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import AccessRights, AuthorizationRule, EntityStatus

from admin_support import administer, fresh, shown
from support import connection_string

HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture(scope="module")
def admin():
    with administer() as admin:
        yield admin


@pytest.fixture
def queue(admin):
    yield from made(fresh("queue"), admin.create_queue, admin.delete_queue)


@pytest.fixture
def topic(admin):
    yield from made(fresh("topic"), admin.create_topic, admin.delete_topic)


def made(name, create, delete):
    create(name)
    yield name
    try:
        delete(name)
    except ResourceNotFoundError:
        pass


def access():
    return AuthorizationRule(
        type="SharedAccessAuthorizationRule",
        claim_type="SharedAccessKey",
        claim_value="None",
        rights=[AccessRights.MANAGE, AccessRights.SEND, AccessRights.LISTEN],
        key_name="all",
        primary_key="5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0=",
        secondary_key="rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY=",
    )


def same_access(rules):
    assert [rule.key_name for rule in rules] == ["all"]
    found, given = rules[0], access()
    names = ["type", "claim_type", "claim_value", "primary_key", "secondary_key"]
    assert shown(found, *names) == shown(given, *names)
    assert set(found.rights) == set(given.rights)
    # Times of a rule are its client's, and this one sends none.
    assert found.created_at_utc is None and found.modified_at_utc is None


def same(found, given):
    assert shown(found, *given) == given


def test_every_property_of_a_queue_comes_back(admin, queue):
    name = fresh("full")
    given = dict(
        auto_delete_on_idle=HOUR,
        dead_lettering_on_message_expiration=True,
        default_message_time_to_live=datetime.timedelta(days=1, seconds=5),
        duplicate_detection_history_time_window=5 * MINUTE,
        enable_batched_operations=False,
        enable_express=False,
        enable_partitioning=False,
        lock_duration=datetime.timedelta(seconds=13),
        max_delivery_count=17,
        max_size_in_megabytes=2048,
        requires_duplicate_detection=True,
        requires_session=True,
        user_metadata="a <b> & \"c\" ä",
        max_message_size_in_kilobytes=2048,
    )
    same(admin.create_queue(name, authorization_rules=[access()], **given), given)
    found = admin.get_queue(name)
    same(found, given)
    same_access(found.authorization_rules)
    assert found.name == name
    assert found.availability_status == "Available"
    assert found.status == EntityStatus.ACTIVE
    changes = dict(
        auto_delete_on_idle=2 * HOUR,
        dead_lettering_on_message_expiration=False,
        default_message_time_to_live=2 * HOUR,
        duplicate_detection_history_time_window=6 * MINUTE,
        enable_batched_operations=True,
        lock_duration=datetime.timedelta(seconds=14),
        max_delivery_count=18,
        max_size_in_megabytes=3072,
        user_metadata="other",
        max_message_size_in_kilobytes=3072,
        status=EntityStatus.SEND_DISABLED,
    )
    for property, value in changes.items():
        setattr(found, property, value)
        admin.update_queue(found)
        found = admin.get_queue(name)
        assert getattr(found, property) == value, property
    same(found, changes)
    same_access(found.authorization_rules)
    admin.delete_queue(name)


def test_a_queue_forwards_and_dead_letters_to_others(admin, queue):
    name = fresh("forward")
    target = fresh("target")
    admin.create_queue(target)
    admin.create_queue(name, forward_to=target, forward_dead_lettered_messages_to=queue)
    found = admin.get_queue(name)
    assert found.forward_to.endswith(f"/{target}")
    assert found.forward_dead_lettered_messages_to.endswith(f"/{queue}")
    found.forward_to, found.forward_dead_lettered_messages_to = queue, None
    admin.update_queue(found)
    found = admin.get_queue(name)
    assert found.forward_to.endswith(f"/{queue}")
    assert not found.forward_dead_lettered_messages_to
    with pytest.raises(ResourceNotFoundError):
        admin.create_queue(fresh("nowhere"), forward_to=fresh("missing"))
    for gone in (name, target):
        admin.delete_queue(gone)


def test_express_and_partitioned_entities_are_shown_as_such(admin):
    name = fresh("express")
    found = admin.create_queue(name, enable_express=True, enable_partitioning=True, max_size_in_megabytes=1024)
    same(found, dict(enable_express=True, enable_partitioning=True, max_size_in_megabytes=16 * 1024))
    admin.delete_queue(name)
    found = admin.create_topic(name, enable_express=True, enable_partitioning=True)
    same(admin.get_topic(name), dict(enable_express=True, enable_partitioning=True))
    admin.delete_topic(name)


def test_every_property_of_a_topic_comes_back(admin):
    name = fresh("topic")
    given = dict(
        default_message_time_to_live=HOUR,
        max_size_in_megabytes=4096,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window=5 * MINUTE,
        enable_batched_operations=False,
        support_ordering=False,
        auto_delete_on_idle=HOUR,
        user_metadata="mine",
        max_message_size_in_kilobytes=2048,
    )
    same(admin.create_topic(name, authorization_rules=[access()], **given), given)
    found = admin.get_topic(name)
    same(found, given)
    same_access(found.authorization_rules)
    changes = dict(
        default_message_time_to_live=2 * HOUR,
        max_size_in_megabytes=5120,
        duplicate_detection_history_time_window=6 * MINUTE,
        enable_batched_operations=True,
        support_ordering=True,
        auto_delete_on_idle=2 * HOUR,
        user_metadata="yours",
        max_message_size_in_kilobytes=3072,
        status=EntityStatus.DISABLED,
    )
    for property, value in changes.items():
        setattr(found, property, value)
        admin.update_topic(found)
        found = admin.get_topic(name)
        assert getattr(found, property) == value, property
    same(found, changes)
    admin.delete_topic(name)


def test_every_property_of_a_subscription_comes_back(admin, topic, queue):
    name = fresh("sub")
    given = dict(
        lock_duration=datetime.timedelta(seconds=20),
        requires_session=True,
        default_message_time_to_live=HOUR,
        dead_lettering_on_message_expiration=True,
        dead_lettering_on_filter_evaluation_exceptions=False,
        max_delivery_count=4,
        enable_batched_operations=False,
        user_metadata="mine",
        auto_delete_on_idle=HOUR,
    )
    same(admin.create_subscription(topic, name, **given), given)
    found = admin.get_subscription(topic, name)
    same(found, given)
    assert found.name == name
    changes = dict(
        lock_duration=datetime.timedelta(seconds=21),
        default_message_time_to_live=2 * HOUR,
        dead_lettering_on_message_expiration=False,
        dead_lettering_on_filter_evaluation_exceptions=True,
        max_delivery_count=5,
        enable_batched_operations=True,
        user_metadata="yours",
        auto_delete_on_idle=2 * HOUR,
        status=EntityStatus.RECEIVE_DISABLED,
    )
    for property, value in changes.items():
        setattr(found, property, value)
        admin.update_subscription(topic, found)
        found = admin.get_subscription(topic, name)
        assert getattr(found, property) == value, property
    same(found, changes)
    found.forward_dead_lettered_messages_to = queue
    admin.update_subscription(topic, found)
    assert admin.get_subscription(topic, name).forward_dead_lettered_messages_to.endswith(f"/{queue}")
    admin.delete_subscription(topic, name)
    with pytest.raises(ResourceNotFoundError):
        admin.get_subscription(topic, name)


def test_what_is_created_can_be_used_at_once(admin, client, queue):
    with client.get_queue_sender(queue) as sender:
        sender.send_messages([ServiceBusMessage("one"), ServiceBusMessage("two")])
        later = datetime.datetime.now(datetime.timezone.utc) + HOUR
        sender.schedule_messages(ServiceBusMessage("three"), later)
    with client.get_queue_receiver(queue) as receiver:
        (received,) = receiver.receive_messages(max_message_count=1, max_wait_time=5)
        receiver.dead_letter_message(received)
    found = admin.get_queue_runtime_properties(queue)
    counts = dict(
        active_message_count=1,
        dead_letter_message_count=1,
        scheduled_message_count=1,
        transfer_message_count=0,
        transfer_dead_letter_message_count=0,
        total_message_count=3,
    )
    same(found, counts)
    assert found.size_in_bytes > 0
    assert found.created_at_utc <= found.updated_at_utc <= found.accessed_at_utc
    listed = [one for one in admin.list_queues_runtime_properties() if one.name == queue]
    same(listed[0], counts)


def test_a_topic_counts_its_subscriptions_and_they_their_messages(admin, client, topic):
    admin.create_subscription(topic, "all")
    admin.create_subscription(topic, "other")
    with client.get_topic_sender(topic) as sender:
        sender.send_messages(ServiceBusMessage("one"))
    found = admin.get_topic_runtime_properties(topic)
    assert found.subscription_count == 2
    assert found.scheduled_message_count == 0
    assert found.size_in_bytes > 0
    found = admin.get_subscription_runtime_properties(topic, "all")
    same(found, dict(active_message_count=1, dead_letter_message_count=0, total_message_count=1))
    names = [one.name for one in admin.list_subscriptions_runtime_properties(topic)]
    assert names == ["all", "other"]
    assert topic in [one.name for one in admin.list_topics_runtime_properties()]


def test_lists_have_every_name_once(admin, topic):
    names = sorted(fresh("many") for _ in range(120))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(admin.create_queue, names))
    listed = [one.name for one in admin.list_queues()]
    assert [name for name in listed if name in set(names)] == names
    assert len(listed) == len(set(listed))
    assert topic in [one.name for one in admin.list_topics()]
    for name in ("b", "A", "c"):
        admin.create_subscription(topic, name)
    assert [one.name for one in admin.list_subscriptions(topic)] == ["A", "b", "c"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(admin.delete_queue, names))
    assert not set(names) & {one.name for one in admin.list_queues()}


def test_names_have_slashes_dots_and_their_own_case(admin):
    name = fresh("Area") + "/Sub.area/_x-Y"
    admin.create_queue(name)
    assert admin.get_queue(name.lower()).name == name.lower(), "this SDK shows the name it asked for"
    assert name in [one.name for one in admin.list_queues()]
    admin.delete_queue(name)


def test_names_have_tildes_and_begin_and_end_with_marks(admin, client):
    for mark in "~-_.":
        topic = f"{mark}{fresh('marks')}{mark}"
        subscription = f"{mark}s{mark}"
        admin.create_topic(topic)
        admin.create_subscription(topic, subscription)
        assert topic in [one.name for one in admin.list_topics()]
        assert [one.name for one in admin.list_subscriptions(topic)] == [subscription]
        with client.get_topic_sender(topic) as sender:
            sender.send_messages(ServiceBusMessage(mark))
        with client.get_subscription_receiver(topic, subscription) as receiver:
            (received,) = receiver.receive_messages(max_message_count=1, max_wait_time=30)
            assert b"".join(received.body) == mark.encode()
            receiver.complete_message(received)
        admin.delete_topic(topic)


def test_a_name_that_can_not_be_is_refused_and_makes_nothing(admin):
    for name in ("a b", "a!b", "a//b", "a/../b", "$a", "a" * 261):
        with pytest.raises(HttpResponseError) as refused:
            admin.create_queue(name)
        assert refused.value.status_code == 400, name
        with pytest.raises(ResourceNotFoundError):
            admin.get_queue(name)


def test_an_unknown_name_that_begins_with_a_dollar_is_not_found(admin):
    for ask in (admin.get_queue, admin.get_topic, admin.delete_queue):
        with pytest.raises(ResourceNotFoundError):
            ask("$nservicebus-verification-queue")


def test_of_many_who_create_the_same_one_succeeds(admin):
    name = fresh("race")

    def create(_):
        try:
            admin.create_queue(name)
            return "created"
        except ResourceExistsError:
            return "exists"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(8)))
    assert sorted(outcomes) == ["created"] + 7 * ["exists"]
    admin.delete_queue(name)


def test_what_is_missing_or_wrong_is_the_error_for_that(admin, queue, topic):
    missing = fresh("missing")
    for ask in (admin.get_queue, admin.get_topic, admin.get_queue_runtime_properties, admin.delete_queue):
        with pytest.raises(ResourceNotFoundError):
            ask(missing)
    with pytest.raises(ResourceNotFoundError):
        admin.get_rule(topic, missing, "$Default")
    with pytest.raises(ResourceNotFoundError):
        admin.create_subscription(missing, "s")
    with pytest.raises(ResourceExistsError):
        admin.create_topic(queue)
    admin.create_subscription(topic, "s")
    with pytest.raises(ResourceExistsError):
        admin.create_subscription(topic, "s")
    for wrong in (dict(lock_duration=6 * MINUTE), dict(max_delivery_count=0), dict(max_size_in_megabytes=5)):
        with pytest.raises(HttpResponseError) as refused:
            admin.create_queue(missing, **wrong)
        assert refused.value.status_code == 400
    found = admin.get_queue(queue)
    found.requires_session = True
    with pytest.raises(HttpResponseError, match="RequiresSession"):
        admin.update_queue(found)


def test_a_wrong_key_is_an_authentication_error_of_management():
    text = connection_string().replace("SAS_KEY_VALUE", "WRONG_KEY_VALUE")
    with administer(text) as admin, pytest.raises(ClientAuthenticationError):
        admin.get_namespace_properties()


def test_the_namespace_says_what_it_is(admin):
    found = admin.get_namespace_properties()
    assert found.name
    assert found.messaging_sku == "Premium"
    assert found.created_at_utc <= found.modified_at_utc
