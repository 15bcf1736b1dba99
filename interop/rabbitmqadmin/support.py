"""The tool, and the interface that it calls: the effect of a command is what the latter shows afterwards."""

import os
import subprocess
from urllib.parse import quote

import requests

HOST, PORT = os.environ["RAILBUS_HOST"], os.environ["RAILBUS_PORT"]
TOOL = [os.environ["RABBITMQADMIN"], "--host", HOST, "--port", PORT, "--username", "guest", "--password", "guest"]


def run(vhost, *arguments, stdin=None):
    command = [*TOOL, "--vhost", vhost, "--non-interactive", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def admin(vhost, *arguments, stdin=None):
    """Runs a command that works; returns what it prints."""
    done = run(vhost, *arguments, stdin=stdin)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def refused(vhost, *arguments):
    """Runs a command that does not work; returns what it says."""
    done = run(vhost, *arguments)
    assert done.returncode != 0, f"{arguments}: {done.stdout}"
    return done.stdout + done.stderr


def call(method, path, **more):
    return requests.request(method, f"http://{HOST}:{PORT}{path}", timeout=10, **more)


def read(*path):
    """What the interface shows at a path, or None where there is nothing."""
    path = "/".join(quote(part, safe="") for part in path)
    answer = call("GET", f"/api/{path}", auth=("guest", "guest"))
    if answer.status_code == 404:
        return None
    answer.raise_for_status()
    return answer.json()


def names(*path):
    return [entry["name"] for entry in read(*path)]
