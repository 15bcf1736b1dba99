"""Queues, exchanges and bindings, and what the tool shows of the broker. (docs/expiry.md#rabbitmqadmin)"""

import json

from support import admin, call, names, read, run


def test_queues_are_declared_with_their_kind_and_arguments(vhost):
    admin(vhost, "queues", "declare", "--name", "a")
    arguments = json.dumps({"x-max-length": 5, "x-overflow": "reject-publish"})
    admin(vhost, "queues", "declare", "--name", "b", "--type", "quorum", "--arguments", arguments)
    admin(vhost, "declare", "queue", "--name", "c", "--auto-delete", "true")
    queues = {queue["name"]: queue for queue in read("queues", vhost)}
    assert [queues[name]["type"] for name in "abc"] == ["classic", "quorum", "classic"]
    assert queues["b"]["arguments"]["x-max-length"] == 5
    assert [queues[name]["auto_delete"] for name in "abc"] == [False, False, True]
    # The same again is no error, and another one is.
    admin(vhost, "queues", "declare", "--name", "a")
    assert "inequivalent arg" in run(vhost, "queues", "declare", "--name", "a", "--type", "quorum").stderr


def test_queues_are_listed_whole_and_by_page(vhost):
    for name in ("a", "b", "c"):
        admin(vhost, "queues", "declare", "--name", name)
    for command in (["queues", "list"], ["list", "queues"]):
        listed = admin(vhost, *command)
        assert [line.split()[0] for line in listed.splitlines() if f" {vhost} " in line] == ["a", "b", "c"]
    paged = admin(vhost, "queues", "list", "--page", "1", "--page-size", "1")
    assert len(paged.splitlines()) == 1
    assert " quorum " not in admin(vhost, "queues", "show", "--name", "b")
    assert run(vhost, "queues", "show", "--name", "none").returncode != 0


def test_queues_are_purged_and_deleted(vhost):
    for name in ("a", "b", "c1", "c2"):
        admin(vhost, "queues", "declare", "--name", name)
    for command in (["queues", "purge"], ["purge", "queue"]):
        call("POST", "/a/messages", headers={"Host": f"{vhost}.localhost"}, data="x").raise_for_status()
        assert read("queues", vhost, "a")["messages"] == 1
        admin(vhost, *command, "--name", "a")
        assert read("queues", vhost, "a")["messages"] == 0
    admin(vhost, "queues", "delete", "--name", "a")
    admin(vhost, "delete", "queue", "--name", "b")
    admin(vhost, "queues", "delete", "--name", "b", "--idempotently")
    assert run(vhost, "queues", "delete", "--name", "b").returncode != 0
    admin(vhost, "queues", "delete_multiple", "--name-pattern", "^c", "--approve")
    assert read("queues", vhost) == []


def test_exchanges_are_declared_listed_and_deleted(vhost):
    admin(vhost, "exchanges", "declare", "--name", "x", "--type", "topic", "--durable", "true")
    arguments = json.dumps({"alternate-exchange": "x"})
    admin(vhost, "declare", "exchange", "--name", "y", "--type", "fanout", "--arguments", arguments)
    assert read("exchanges", vhost, "x")["type"] == "topic"
    assert read("exchanges", vhost, "y")["arguments"] == {"alternate-exchange": "x"}
    for command in (["exchanges", "list"], ["list", "exchanges"]):
        listed = admin(vhost, *command)
        assert {"x", "y"} <= {line.split()[0] for line in listed.splitlines() if vhost in line}
    admin(vhost, "exchanges", "delete", "--name", "x")
    admin(vhost, "exchanges", "delete", "--name", "x", "--idempotently")
    admin(vhost, "delete", "exchange", "--name", "y")
    assert not {"x", "y"} & set(names("exchanges", vhost))


def test_bindings_are_told_by_key_and_arguments(vhost):
    admin(vhost, "exchanges", "declare", "--name", "x", "--type", "headers")
    admin(vhost, "queues", "declare", "--name", "q")
    arguments = '{"n": 1}'
    bindings = [
        ["--routing-key", ""],
        ["--routing-key", "a/b~c"],
        ["--routing-key", "a/b~c", "--arguments", arguments],
    ]
    ends = ["--source", "x", "--destination-type", "queue", "--destination", "q"]

    def shown():
        made = [it for it in read("bindings", vhost) if it["source"] == "x"]
        return sorted((it["routing_key"], it["arguments"].get("n", 0)) for it in made)

    for declare, delete in (
        (["bindings", "declare"], ["bindings", "delete"]),
        (["exchanges", "bind"], ["exchanges", "unbind"]),
        (["declare", "binding"], ["delete", "binding"]),
    ):
        for binding in bindings:
            admin(vhost, *declare, *ends, *binding)
        assert shown() == [("", 0), ("a/b~c", 0), ("a/b~c", 1)]
        for command in (["bindings", "list"], ["list", "bindings"]):
            assert admin(vhost, *command).count("a/b~c") == 2
        for binding in bindings:
            admin(vhost, *delete, *ends, *binding)
        assert shown() == []
    admin(vhost, "bindings", "delete", *ends, "--routing-key", "", "--idempotently")
    admin(vhost, "exchanges", "declare", "--name", "y", "--type", "fanout")
    between = ["--source", "x", "--destination-type", "exchange", "--destination", "y", "--routing-key", "k"]
    admin(vhost, "bindings", "declare", *between)
    assert shown() == [("k", 0)]


def test_the_overview_has_the_totals_of_the_broker(vhost):
    def queues():
        lines = admin("/", "show", "overview").splitlines()
        (line,) = [line for line in lines if line.startswith("Queues and streams (total)")]
        return int(line.split()[-1])

    before = queues()
    admin(vhost, "queues", "declare", "--name", "q")
    assert queues() == before + 1
    assert admin("/", "show", "churn")
    assert "/api" in admin("/", "show", "endpoint")


def test_commands_for_streams_show_and_delete_queues(vhost):
    admin(vhost, "queues", "declare", "--name", "q")
    for command in (["list"], ["show", "--name", "q"]):
        assert " classic " in admin(vhost, "streams", *command)
    admin(vhost, "streams", "delete", "--name", "q")
    assert read("queues", vhost) == []


def test_virtual_hosts_are_declared_listed_and_deleted(vhost):
    names = [f"{vhost}-{end}" for end in "ab"]
    admin("/", "vhosts", "declare", "--name", names[0], "--description", "a", "--default-queue-type", "classic")
    admin("/", "declare", "vhost", "--name", names[1])
    admin("/", "vhosts", "declare", "--name", names[1])
    for command in (["vhosts", "list"], ["list", "vhosts"]):
        assert {"/", vhost, *names} <= {line.split()[0] for line in admin("/", *command).splitlines()}
    admin("/", "vhosts", "delete", "--name", names[0])
    admin("/", "vhosts", "delete", "--name", names[0], "--idempotently")
    admin("/", "delete", "vhost", "--name", names[1])
    assert read("vhosts", names[0]) is read("vhosts", names[1]) is None
    admin("/", "vhosts", "declare", "--name", names[0])
    admin("/", "vhosts", "delete_multiple", "--name-pattern", f"^{vhost}-.$", "--approve")
    assert read("vhosts", names[0]) is None
    assert read("vhosts", vhost) is not None
    assert run("/", "vhosts", "delete", "--name", "/").returncode != 0
