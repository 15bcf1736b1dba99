"""Definitions, as one file of the broker or of a virtual host. (docs/expiry.md#rabbitmqadmin)"""

import json

import pytest

from support import admin, names, read

TRANSFORMATIONS = ["no_op", "strip_cmq_keys_from_policies", "prepare_for_quorum_queue_migration"]


@pytest.fixture
def filled(vhost):
    admin(vhost, "queues", "declare", "--name", "q", "--type", "quorum")
    admin(vhost, "exchanges", "declare", "--name", "x", "--type", "topic")
    ends = ["--source", "x", "--destination-type", "queue", "--destination", "q", "--routing-key", "a.#"]
    admin(vhost, "bindings", "declare", *ends)
    policy = ["--name", "p", "--pattern", "", "--apply-to", "all", "--definition", '{"max-length": 5}']
    admin(vhost, "policies", "declare", *policy)
    admin(vhost, "operator_policies", "declare", *policy)
    return vhost


def empty(vhost):
    admin(vhost, "queues", "delete", "--name", "q")
    admin(vhost, "exchanges", "delete", "--name", "x")
    admin(vhost, "policies", "delete", "--name", "p")
    admin(vhost, "operator_policies", "delete", "--name", "p")


def is_filled(vhost):
    assert names("queues", vhost) == ["q"]
    assert "x" in names("exchanges", vhost)
    assert [it["routing_key"] for it in read("bindings", vhost) if it["source"] == "x"] == ["a.#"]
    assert names("policies", vhost) == names("operator-policies", vhost) == ["p"]


def test_all_definitions_are_exported_and_imported(filled, tmp_path):
    file = tmp_path / "definitions.json"
    admin("/", "definitions", "export", "--file", str(file))
    empty(filled)
    admin("/", "definitions", "import", "--file", str(file))
    is_filled(filled)
    printed = json.loads(admin("/", "definitions", "export", "--stdout"))
    assert printed == json.loads(file.read_text())
    empty(filled)
    admin("/", "definitions", "import", "--stdin", stdin=json.dumps(printed))
    is_filled(filled)


def test_an_import_makes_the_virtual_hosts_of_its_file(vhost):
    name = f"{vhost}-new"
    file = {"vhosts": [{"name": name}], "queues": [{"name": "q", "vhost": name, "arguments": {}}]}
    admin("/", "definitions", "import", "--stdin", stdin=json.dumps(file))
    assert names("queues", name) == ["q"]
    admin("/", "vhosts", "delete", "--name", name)


def test_definitions_of_a_virtual_host_are_exported_and_imported(filled, tmp_path):
    file = tmp_path / "definitions.json"
    admin(filled, "definitions", "export_from_vhost", "--file", str(file))
    empty(filled)
    admin(filled, "definitions", "import_into_vhost", "--file", str(file))
    is_filled(filled)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_definitions_are_transformed(filled, transformation):
    options = ["--stdout", "--transformations", transformation]
    exported = json.loads(admin("/", "definitions", "export", *options))
    assert (filled, "q") in [(it["vhost"], it["name"]) for it in exported["queues"]]
    exported = json.loads(admin(filled, "definitions", "export_from_vhost", *options))
    assert [it["name"] for it in exported["queues"]] == ["q"]
