"""Celery: tasks over the `azureservicebus` transport, run by a worker of its own process."""

import importlib
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery import chain, group

from support import PATIENCE, connect, eventually, peek

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("celery")
    (folder / "results").mkdir()
    return folder


@pytest.fixture(scope="module")
def client(namespace):
    with connect(namespace.connection_string) as client:
        yield client


@pytest.fixture(scope="module")
def prefix():
    return f"celery-{os.urandom(6).hex()}-"


@pytest.fixture(scope="module")
def tasks(namespace, folder, prefix):
    """The application, as a web server imports it to send tasks."""
    os.environ.update(CELERY_URL=namespace.kombu_url(), CELERY_FOLDER=str(folder), CELERY_PREFIX=prefix)
    return importlib.import_module("tasks")


@contextmanager
def running(folder, *options):
    """A worker that is ready. Ends by SIGKILL, whatever it is doing."""
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--loglevel=INFO", "--pool=solo"]
    log = folder / f"worker-{os.urandom(4).hex()}.log"
    with log.open("w") as output:
        worker = subprocess.Popen([*command, *options], cwd=HERE, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: worker.poll() is not None or " ready." in log.read_text(), "start of a worker")
        assert worker.poll() is None, log.read_text()
        yield worker
    finally:
        worker.kill()
        worker.wait()


@pytest.fixture(scope="module")
def worker(folder, tasks):
    with running(folder, "--queues=celery,reports"):
        yield


def get(result):
    return result.get(timeout=PATIENCE)


def test_a_task_is_run_and_its_result_comes_back(tasks, worker):
    assert get(tasks.add.delay(2, 3)) == 5


def test_a_task_goes_to_the_queue_that_its_route_names(tasks, worker, client, prefix):
    assert get(tasks.report.delay("of the day")) == "report of the day"
    assert peek(client, f"{prefix}reports") == []


def test_a_task_that_fails_is_tried_again(tasks, worker):
    assert get(tasks.flaky.delay(2)) == 2


def test_a_failure_is_told_to_the_caller(tasks, worker, client, prefix):
    with pytest.raises(ValueError, match="never"):
        get(tasks.broken.delay())
    eventually(lambda: peek(client, f"{prefix}celery") == [], "settlement of the failed task's message")


def test_a_chain_and_a_group_come_to_their_end(tasks, worker):
    assert get(chain(tasks.add.s(1, 2), tasks.add.s(10))()) == 13
    assert get(group(tasks.add.s(number, number) for number in range(5))()) == [0, 2, 4, 6, 8]


def test_a_task_with_a_countdown_is_run_when_it_is_due(tasks, worker):
    assert get(tasks.add.apply_async((4, 4), countdown=1)) == 8


def test_a_task_whose_worker_was_killed_is_run_by_another(tasks, folder, prefix, client):
    result = tasks.interrupted.apply_async(("one",), queue="fragile")
    with running(folder, "--queues=fragile"):
        eventually((folder / "one-begun").exists, "begin of the task")
    with running(folder, "--queues=fragile"):
        assert get(result) == "finished"
    assert peek(client, f"{prefix}fragile") == []
