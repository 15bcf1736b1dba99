"""A broker on the ports of the cloud, 443 and 5671, at a loopback address of its own.

kombu knows no port and no emulator flag, so this is the only kind of broker that it can speak to. Ports below 1024
take root, or `net.ipv4.ip_unprivileged_port_start` set to 443 or less.
"""

import os
import random
import subprocess


class Namespace:
    """`railbus serve --ephemeral`, for the time of a `with` block. Its authority is one that `run` has made."""

    def __init__(self):
        self.address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])

    def __enter__(self):
        command = [os.environ["RAILBUS_BIN"], "serve", "--ephemeral", "--tls-dir", os.environ["NAMESPACE_TLS"]]
        for port in [443, 5671]:
            command += ["--listen", f"{self.address}:{port}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("railbus ready "), "the broker did not become ready"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def kombu_url(self, key="SAS_KEY_VALUE"):
        """The broker as kombu's transport and Celery take it.

        kombu appends a domain to a name that does not end in `.net`; the SDK drops everything behind the slash.
        """
        return f"azureservicebus://RootManageSharedAccessKey:{key}@{self.address}/.net"

    @property
    def connection_string(self):
        """The broker as the SDK takes it, within TLS."""
        key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
        return f"Endpoint=sb://{self.address};{key}"
