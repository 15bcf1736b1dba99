"""A broker of one's own whose clock a test moves. What is here is all that a project needs to copy."""

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

READY = re.compile(r'railbus ready listen=([^, ]+).* connection-string="([^"]+)"')
ENTITIES = Path(__file__).resolve().parent.parent


class Broker:
    """`railbus serve --ephemeral --virtual-clock`, for the time of a `with` block."""

    def __init__(self, entities="clock.json", options=()):
        self.entities = ENTITIES / entities
        self.options = options

    def __enter__(self):
        command = [os.environ["RAILBUS_BIN"], "serve", "--ephemeral", "--virtual-clock"]
        command += ["--listen", "127.0.0.1:0", "--entities", str(self.entities), *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = READY.match(self.process.stdout.readline())
        assert ready, "the broker did not become ready"
        self.address, self.connection_string = ready.groups()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def advance(self, duration):
        """Lets time pass, such as `PT5M`; returns when all that became due has happened."""
        return self.set_clock({"advance": duration})

    def freeze(self):
        """Stops the clock until it is advanced, so that a lock lasts however slow the test is."""
        return self.set_clock({"freeze": True})

    def set_clock(self, change):
        body = json.dumps(change).encode()
        with urlopen(Request(f"http://{self.address}/$railbus/clock", body)) as answer:
            return json.load(answer)
