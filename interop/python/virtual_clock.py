"""A broker of one's own whose clock a test moves. What is here is all that a project needs to copy."""

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

READY = re.compile(r'railbus ready listen=([^, ]+).* connection-string="([^"]+)"')
ENTITIES = Path(__file__).resolve().parent.parent / "clock.json"


class Broker:
    """`railbus serve --ephemeral --virtual-clock`, for the time of a `with` block."""

    def __enter__(self):
        command = [os.environ["RAILBUS_BIN"], "serve", "--ephemeral", "--virtual-clock"]
        command += ["--listen", "127.0.0.1:0", "--entities", str(ENTITIES)]
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
        body = json.dumps({"advance": duration}).encode()
        with urlopen(Request(f"http://{self.address}/$railbus/clock", body)) as answer:
            return json.load(answer)
