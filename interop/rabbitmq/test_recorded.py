"""RabbitMQ's own server still gives the answers that are recorded. Collected when it runs: conftest.py."""

import json
import os
import pathlib

import pytest

from programs import PROGRAMS, answers

RECORDED = json.loads((pathlib.Path(__file__).parent / "recorded.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_recorded_answers_are_those_of_rabbitmq(name):
    ports = int(os.environ["RABBITMQ_PORT"]), int(os.environ["RABBITMQ_HTTP_PORT"])
    assert answers(name, "127.0.0.1", *ports) == RECORDED[name]
