"""Policies of users and of operators. (docs/expiry.md#rabbitmqadmin)"""

import json

import pytest

from support import admin, read

LAYERS = {"policies": "policies", "operator_policies": "operator-policies"}


@pytest.fixture(params=LAYERS)
def layer(request):
    return request.param


def declare(vhost, layer, name, definition, command="declare", **more):
    options = {"name": name, "pattern": "^q", "apply-to": "queues", "definition": json.dumps(definition), **more}
    options = [part for key, value in options.items() for part in (f"--{key}", value)]
    admin(vhost, layer, command, *options)


def definitions(vhost, layer):
    return {policy["name"]: policy["definition"] for policy in read(LAYERS[layer], vhost)}


def test_policies_are_declared_listed_and_deleted(vhost, layer):
    declare(vhost, layer, "a", {"max-length": 5}, priority="3")
    declare(vhost, layer, "b", {"expires": 60000}, command="set")
    admin(vhost, "queues", "declare", "--name", "q")
    assert read("queues", vhost, "q")["effective_policy_definition"] == {"max-length": 5}
    declare(vhost, layer, "a", {"max-length": 6}, command="update", priority="3")
    assert read("queues", vhost, "q")["effective_policy_definition"] == {"max-length": 6}
    for command in (
        [layer, "list"],
        ["list", layer],
        [layer, "list_in", "--apply-to", "queues"],
        [layer, "list_matching_object", "--name", "q", "--type", "queues"],
    ):
        listed = [line.split()[0] for line in admin(vhost, *command).splitlines() if vhost in line]
        assert sorted(listed) == ["a", "b"], command
    admin(vhost, layer, "delete", "--name", "a")
    admin(vhost, "delete", {"policies": "policy"}.get(layer, "operator_policy"), "--name", "b")
    assert definitions(vhost, layer) == {}


def test_parts_of_definitions_are_changed(vhost, layer):
    declare(vhost, layer, "a", {"max-length": 5, "expires": 60000})
    declare(vhost, layer, "b", {"max-length": 9, "expires": 60000})
    admin(vhost, layer, "patch", "--name", "a", "--definition", '{"message-ttl": 7}')
    assert definitions(vhost, layer)["a"] == {"max-length": 5, "expires": 60000, "message-ttl": 7}
    new = ["--definition-key", "max-length", "--new-value"]
    admin(vhost, layer, "update_definition", "--name", "a", *new, "6")
    admin(vhost, layer, "delete_definition_keys", "--name", "a", "--definition-keys", "message-ttl")
    assert definitions(vhost, layer)["a"] == {"max-length": 6, "expires": 60000}
    admin(vhost, layer, "update_definitions_of_all_in", *new, "8")
    admin(vhost, layer, "delete_definition_keys_from_all_in", "--definition-keys", "expires")
    assert definitions(vhost, layer) == {"a": {"max-length": 8}, "b": {"max-length": 8}}


def test_all_policies_of_the_broker_are_changed(vhost):
    declare(vhost, "policies", "a", {"max-length": 5, "expires": 60000})
    admin(vhost, "policies", "update_definitions_of_all", "--definition-key", "max-length", "--new-value", "8")
    admin(vhost, "policies", "delete_definition_keys_from_all", "--definition-keys", "expires")
    assert definitions(vhost, "policies") == {"a": {"max-length": 8}}


def test_policies_override_others_and_fill_gaps(vhost):
    declare(vhost, "policies", "a", {"max-length": 5})
    override = ["--name", "a", "--override-name", "over", "--definition", '{"expires": 60000}']
    admin(vhost, "policies", "declare_override", *override)
    blanket = ["--name", "blanket", "--apply-to", "queues", "--definition", '{"max-length": 99}']
    admin(vhost, "policies", "declare_blanket", *blanket)
    for queue in ("q", "other"):
        admin(vhost, "queues", "declare", "--name", queue)
    effective = [read("queues", vhost, queue)["effective_policy_definition"] for queue in ("q", "other")]
    assert effective == [{"max-length": 5, "expires": 60000}, {"max-length": 99}]
    declare(vhost, "policies", "b", {"max-length": 5})
    for command in ("list_conflicting", "list_conflicting_in"):
        listed = [line.split()[0] for line in admin(vhost, "policies", command).splitlines() if vhost in line]
        assert sorted(listed) == ["a", "b"], command
