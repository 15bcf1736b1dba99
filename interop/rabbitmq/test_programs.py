"""The programs of RabbitMQ's users, against Railbus. Their answers are RabbitMQ's own, as recorded, but for those in
`differences.json`, each of which names its row of docs/rabbitmq.md."""

import json
import os
import pathlib

import pytest

from programs import answers

HERE = pathlib.Path(__file__).parent
# The other programs need what Railbus has not yet: dead-letter exchanges and queues that go with their clients.
COMPARED = ["queues", "arguments", "exchanges", "outcomes", "deliveries"]
RECORDED = json.loads((HERE / "recorded.json").read_text())
DIFFERENCES = json.loads((HERE / "differences.json").read_text())
ROWS = (HERE / "../../docs/rabbitmq.md").read_text().split("## Differences from RabbitMQ")[1]


def expected(name):
    changed = {label: one["railbus"] for label, one in DIFFERENCES.get(name, {}).items()}
    return {**RECORDED[name], **changed}


@pytest.mark.parametrize("name", COMPARED)
def test_a_program_has_the_answers_of_rabbitmq(name):
    port = int(os.environ["RAILBUS_PORT"])
    assert answers(name, os.environ["RAILBUS_HOST"], port, port) == expected(name)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_documented_and_is_one(name):
    for label, difference in DIFFERENCES[name].items():
        assert difference["railbus"] != RECORDED[name][label], label
        assert f"| {difference['row']} |" in ROWS, label
