"""Commands that do not work, each as documented. (docs/expiry.md#rabbitmqadmin)"""

import pytest

from support import admin, refused

# What the interface has no path for.
MISSING = [
    "auth_attempts stats --node railbus",
    "channels list",
    "close connection --name c",
    "close user_connections --username u",
    "connections close --name c",
    "connections list",
    "connections list_of_user --username u",
    "deprecated_features list",
    "deprecated_features list_used",
    "feature_flags enable_all",
    "feature_flags list",
    "federation list_all_links",
    "federation list_all_upstreams",
    "get messages --queue q",
    "global_parameters list",
    "global_parameters set --name p --value {}",
    "health_check cluster_wide_alarms",
    "health_check local_alarms",
    "health_check node_is_quorum_critical",
    "list consumers",
    "list nodes",
    "nodes list",
    "nodes memory_breakdown_in_bytes --node railbus",
    "nodes memory_breakdown_in_percent --node railbus",
    "parameters list_all",
    "parameters set --name p --component c --value {}",
    "permissions declare --user u --configure .* --read .* --write .*",
    "permissions list",
    "plugins list_all",
    "publish message --routing-key q --payload x",
    "queues rebalance",
    "rebalance queues",
    "show memory_breakdown_in_bytes --node railbus",
    "show memory_breakdown_in_percent --node railbus",
    "shovels list_all",
    "user_limits declare --user u --name max-connections --value 1",
    "user_limits list",
    "users declare --name u --password p",
    "users list",
    "vhost_limits declare --name max-connections --value 1",
    "vhost_limits list",
    "vhosts disable_deletion_protection --name v",
    "vhosts enable_deletion_protection --name v",
]


@pytest.mark.parametrize("command", MISSING)
def test_what_is_not_there_is_not_found(vhost, command):
    assert "404" in refused(vhost, *command.split()), command


def test_streams_are_refused_by_name(vhost):
    said = refused(vhost, "streams", "declare", "--name", "s", "--expiration", "1h")
    assert "unsupported queue type 'stream'" in said


def test_other_default_types_of_queues_are_refused(vhost):
    said = refused("/", "vhosts", "declare", "--name", f"{vhost}-q", "--default-queue-type", "quorum")
    assert "default_queue_type" in said


def test_lists_and_maps_as_arguments_of_bindings_are_refused(vhost):
    admin(vhost, "queues", "declare", "--name", "q")
    ends = ["--source", "amq.headers", "--destination-type", "queue", "--destination", "q", "--routing-key", ""]
    refused(vhost, "bindings", "declare", *ends, "--arguments", '{"n": [1]}')
