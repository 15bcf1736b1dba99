"""The broker process: started on one data directory and one port, killed, started again.

`start` returns when the broker has printed its ready line, or raises with what it wrote to stderr.
"""

import os
import re
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

READY = re.compile(r'^railbus ready listen=(\S+) connection-string="([^"]+)"$')
PATIENCE = 60
ENTITIES = Path(__file__).resolve().parent.parent / "Config.json"


class Broker:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.log = self.directory / "broker.log"
        # One port for the whole run, so that clients find the restarted broker where it was.
        self.port = free_port()
        self.connection_string = None
        self.process = None

    def start(self):
        command = [
            os.environ["RAILBUS_BIN"],
            "serve",
            *("--data-dir", str(self.directory / "data")),
            *("--listen", f"127.0.0.1:{self.port}"),
            *("--entities", str(ENTITIES)),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.directory, stdout=subprocess.PIPE, stderr=log)
        ready = READY.match(self.first_line())
        if not ready:
            raise RuntimeError(f"the broker did not become ready\n{self.last_words()}")
        self.connection_string = ready[2]

    def first_line(self):
        """The first line on stdout; what there is of it when the broker exits or takes too long."""
        line = b""
        deadline = time.monotonic() + PATIENCE
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 4096) if readable else b""
            if not chunk:
                break
            line += chunk
        return line.decode().strip()

    def kill(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the broker had exited with {self.process.returncode}\n{self.last_words()}")
        self.process.send_signal(signal.SIGKILL)
        self.reap()

    def stop(self):
        """Asks the broker to stop and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.reap()

    def reap(self):
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def abandon(self):
        """Leaves nothing running, whatever happened before."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.reap()

    def last_words(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
