"""What a broker of this package promises. Run against the installed wheel."""

import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import time

import pytest

import railbus

ORDERS = {"queues": [{"name": "orders"}]}
START_AND_FREEZE = """
import os, railbus, signal
broker = railbus.start()
{then}
print(broker._process.pid, flush=True)
signal.pause()
"""


def wait_for_end(pid):
    descriptor = os.pidfd_open(pid)
    select.select([descriptor], [], [])
    os.close(descriptor)


@pytest.mark.parametrize("then", ["", "os.fork() or signal.pause()"], ids=["alone", "with a forked child"])
def test_nothing_is_left_of_a_process_that_is_killed(then, tmp_path):
    script = START_AND_FREEZE.format(then=then)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True, start_new_session=True
    )
    with parent:
        pid = int(parent.stdout.readline())
        parent.kill()
        wait_for_end(pid)
        if then:
            os.killpg(parent.pid, signal.SIGKILL)
    assert os.listdir(tmp_path) == []


def test_a_broker_that_is_stopped_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with railbus.start(ORDERS) as broker:
        assert broker.connection_string.startswith("Endpoint=sb://localhost:")
    assert broker.stop() == 0
    assert os.listdir(tmp_path) == []


def test_a_taken_port_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(railbus.BrokerError, match=f"exit code 2 before it was ready:\n(.*\n)*.*127.0.0.1:{port}"):
            railbus.start(port=port)


def test_a_wrong_entity_is_named():
    with pytest.raises(railbus.BrokerError, match="lock-duration"):
        railbus.start({"queues": [{"name": "orders", "lock-duration": "PT1H"}]})


def test_a_missing_program_is_a_clear_error(monkeypatch):
    monkeypatch.setattr("railbus.program.installed_paths", lambda: [])
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("RAILBUS_BIN", raising=False)
    with pytest.raises(FileNotFoundError, match="the program `railbus` is missing: install the wheel"):
        railbus.start()
    monkeypatch.setenv("RAILBUS_BIN", "/nowhere/railbus")
    with pytest.raises(railbus.BrokerError, match="/nowhere/railbus cannot be started: No such file"):
        railbus.start()


def test_settings_of_the_machine_do_not_count(tmp_path, monkeypatch):
    (tmp_path / "railbus.toml").write_text("listen = ['nowhere']")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAILBUS_LISTEN", "nowhere")
    monkeypatch.setenv("CONFIG_PATH", "/nowhere")
    railbus.start().stop()


def test_a_refused_duration_is_an_error():
    with railbus.start() as broker, pytest.raises(railbus.BrokerError, match="tomorrow"):
        broker.advance("tomorrow")


def test_a_failed_test_shows_what_was_logged_meanwhile(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def refused(broker, text):\n    with pytest.raises(Exception):\n        broker.advance(text)\n"
        "def test_passes(railbus):\n    refused(railbus, 'yesterday')\n"
        "def test_fails(railbus):\n    refused(railbus, 'tomorrow')\n    assert False\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "test_it.py"]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert "1 failed, 1 passed" in run.stdout
    log = run.stdout.partition("log of railbus")[2]
    assert "`tomorrow` is not" in log
    assert "`yesterday` is not" not in log


def test_a_start_takes_milliseconds(record_property):
    took = []
    for _ in range(5):
        began = time.perf_counter()
        with railbus.start(ORDERS):
            took.append(time.perf_counter() - began)
    record_property("median_ms", round(statistics.median(took) * 1000, 1))
    print(f"ready after {statistics.median(took) * 1000:.1f} ms (median of {len(took)})")
