"""The programs of RabbitMQ's users, against Railbus. Their answers are RabbitMQ's own, as recorded, but for those in
`differences.json`, each of which names its row of docs/rabbitmq.md."""

import json
import os
import pathlib

import pytest

from programs import PROGRAMS, answers

HERE = pathlib.Path(__file__).parent
RECORDED = json.loads((HERE / "recorded.json").read_text())
DIFFERENCES = json.loads((HERE / "differences.json").read_text())
ROWS = (HERE / "../../docs/rabbitmq.md").read_text().split("## Differences from RabbitMQ")[1]


# An annotation of RabbitMQ 4.3, which the recorded version does not write.
NEWER = "x-acquired-count"


def without_newer(answer):
    if isinstance(answer, dict):
        return {key: without_newer(one) for key, one in answer.items() if key != NEWER}
    return [without_newer(one) for one in answer] if isinstance(answer, list) else answer


def expected(name):
    changed = {label: one["railbus"] for label, one in DIFFERENCES.get(name, {}).items()}
    return {**RECORDED[name], **changed}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_answers_of_rabbitmq(name):
    port = int(os.environ["RAILBUS_PORT"])
    assert without_newer(answers(name, os.environ["RAILBUS_HOST"], port, port)) == expected(name)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_documented_and_is_one(name):
    for label, difference in DIFFERENCES[name].items():
        assert difference["railbus"] != RECORDED[name][label], label
        assert f"| {difference['row']} |" in ROWS, label
