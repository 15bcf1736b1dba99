"""Rules by the administration client: every kind of filter, action and value."""

import datetime

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.management import (
    CorrelationRuleFilter,
    FalseRuleFilter,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from admin_support import administer, fresh

VALUES = {
    "string": "blue & <red>",
    "int": 5,
    "long": 2**40,
    "double": 2.5,
    "bool": True,
    "datetime": datetime.datetime(2020, 7, 5, 11, 12, 13, tzinfo=datetime.timezone.utc),
    "duration": datetime.timedelta(days=1, hours=2, minutes=3),
}


@pytest.fixture(scope="module")
def admin():
    with administer() as admin:
        yield admin


@pytest.fixture
def place(admin):
    topic = fresh("rules")
    admin.create_topic(topic)
    admin.create_subscription(topic, "s")
    yield topic, "s"
    admin.delete_topic(topic)


def test_a_new_subscription_selects_everything(admin, place):
    (rule,) = admin.list_rules(*place)
    assert rule.name == "$Default"
    assert isinstance(rule.filter, TrueRuleFilter)
    assert rule.action is None
    admin.delete_rule(*place, "$Default")
    assert list(admin.list_rules(*place)) == []


def test_filters_of_every_kind_come_back(admin, place):
    fields = dict(
        correlation_id="c", message_id="m", to="t", reply_to="r", label="l",
        session_id="s", reply_to_session_id="rs", content_type="ct",
    )
    filters = {
        "true": TrueRuleFilter(),
        "false": FalseRuleFilter(),
        "sql": SqlRuleFilter("n > 5 AND color = 'blue'"),
        "parameters": SqlRuleFilter("n > @int AND color = @string", parameters={"@int": 5, "@string": "x"}),
        "fields": CorrelationRuleFilter(**fields),
        "properties": CorrelationRuleFilter(properties=VALUES),
    }
    for name, given in filters.items():
        admin.create_rule(*place, name, filter=given)
        found = admin.get_rule(*place, name).filter
        assert type(found) is type(given), name
        if isinstance(given, CorrelationRuleFilter):
            assert {key: getattr(found, key) for key in fields} == {key: getattr(given, key) for key in fields}
            assert dict(found.properties or {}) == dict(given.properties or {})
        elif name not in ("true", "false"):
            assert found.sql_expression == given.sql_expression
            assert dict(found.parameters or {}) == dict(given.parameters or {}), name
    assert [rule.name for rule in admin.list_rules(*place)] == ["$Default", *sorted(filters)]


def test_a_rule_is_replaced_with_its_action(admin, place):
    action = SqlRuleAction("SET seen = @when", parameters={"@when": VALUES["datetime"]})
    admin.create_rule(*place, "r", filter=SqlRuleFilter("n > 5"), action=action)
    found = admin.get_rule(*place, "r")
    assert found.action.sql_expression == action.sql_expression
    assert dict(found.action.parameters) == action.parameters
    created = found.created_at_utc
    found.filter, found.action = CorrelationRuleFilter(label="red"), None
    admin.update_rule(*place, found)
    found = admin.get_rule(*place, "r")
    assert (found.filter.label, found.action, found.created_at_utc) == ("red", None, created)


def test_rules_that_make_no_sense_are_refused(admin, place):
    with pytest.raises(HttpResponseError) as refused:
        admin.create_rule(*place, "r", filter=SqlRuleFilter("n >"))
    assert refused.value.status_code == 400
    with pytest.raises(ResourceExistsError):
        admin.create_rule(*place, "$Default")
    with pytest.raises(ResourceNotFoundError):
        admin.get_rule(*place, "missing")
    with pytest.raises(ResourceNotFoundError):
        admin.delete_rule(*place, "missing")
