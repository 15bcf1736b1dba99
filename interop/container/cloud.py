"""A broker in the place of a namespace of the cloud, and what makes programs trust it."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from logs import log

HOST = "shop.servicebus.windows.net"
URL = f"https://{HOST}/health"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railbus/interop"


class Trust:
    """What `railbus ca env` has printed."""

    def __init__(self, printed):
        self.printed = printed
        self.variables = dict(re.findall(r"^export (\w+)='(.*)'$", printed, re.MULTILINE))

    def environment(self, *names):
        """The variables of a program that trusts the broker by those of these names alone."""
        own = {name: value for name, value in os.environ.items() if name not in self.variables}
        return own | {name: self.variables[name] for name in names}

    def commands_for_java(self):
        """The commands that are printed as a comment, since they are entered once."""
        _, commands = self.printed.split("# Java needs a trust store, which is made once:\n")
        return re.sub(r"^#   ", "", commands, flags=re.MULTILINE)

    def setting_for_php(self):
        """The line of a php.ini, which is printed as a comment since no variable stands for it."""
        return re.search(r"^#   (openssl\.cafile=.*)$", self.printed, re.MULTILINE).group(1)


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"not installed on this machine: {program}")


def output(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


@pytest.fixture
def hosts(tmp_path):
    """The hosts file has the line that `railbus ca env` prints, for as long as a test runs."""
    file = tmp_path / "hosts"
    file.write_text(f"127.0.0.1 localhost {HOST}\n")
    subprocess.run(["mount", "--bind", file, "/etc/hosts"], check=True)
    yield
    subprocess.run(["umount", "/etc/hosts"], check=True)


@pytest.fixture
def broker(hosts, tmp_path):
    """The connection string of a broker, and what makes programs trust it."""
    authority = ["--tls-dir", str(tmp_path / "tls"), "--as", HOST]
    program = os.environ["RAILBUS_BIN"]
    printed = output([program, "ca", "env", *authority])
    assert f"# 127.0.0.1 {HOST}\n" in printed
    command = [program, "serve", "--ephemeral", "--entities", "../Config.json", *authority]
    with log() as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    ready = process.stdout.readline()
    yield re.search('connection-string="([^"]+)"', ready).group(1), Trust(printed)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
