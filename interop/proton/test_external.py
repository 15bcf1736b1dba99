"""SASL EXTERNAL: a client whose TLS certificate gives it its rights, on a broker of its own."""

import os
import re
import signal
import subprocess
import time

import pytest

from proton import ConnectionException, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from support import PATIENCE, message

READY = re.compile(r"railbus ready listen=127\.0\.0\.1:(\d+)")
SETTINGS = """
tls-client-authority = "clients.pem"
[[auth.certificates]]
name = "worker"
rights = ["send", "listen"]
[[queues]]
name = "orders"
"""
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Site:
    """A directory with authorities, certificates and the settings of a broker."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "railbus.toml").write_text(SETTINGS)
        for authority in ("first", "second"):
            self.run("openssl", "req", "-x509", *NEW_KEY, "-days", "2", *self.named(authority, ".pem"))
        self.trust("first")

    def run(self, *command):
        return subprocess.run(command, cwd=self.directory, check=True, capture_output=True).stdout

    def named(self, name, suffix):
        return ["-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", name + suffix]

    def trust(self, authority):
        """Has clients with a certificate by this authority believed."""
        (self.directory / "clients.pem").write_bytes((self.directory / f"{authority}.pem").read_bytes())

    def certificate(self, name, authority):
        """The files of a certificate and of its key."""
        self.run("openssl", "req", *NEW_KEY, *self.named(name, ".request"))
        (self.directory / "extensions").write_text(f"subjectAltName=DNS:{name}\n")
        signed = ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2"]
        signed += ["-extfile", "extensions", "-in", f"{name}.request", "-out", f"{name}.pem"]
        self.run("openssl", "x509", "-req", *signed)
        return str(self.directory / f"{name}.pem"), str(self.directory / f"{name}.key")

    def start(self):
        """A broker with the settings, and its port."""
        command = [os.environ["RAILBUS_BIN"], "serve", "--ephemeral", "--config", "railbus.toml"]
        command += ["--listen", "127.0.0.1:0", "--tls-dir", "tls"]
        broker = subprocess.Popen(
            command, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        ready = READY.match(broker.stdout.readline())
        assert ready, "the broker did not become ready"
        exported = self.run(os.environ["RAILBUS_BIN"], "ca", "export", "--tls-dir", "tls")
        (self.directory / "broker.pem").write_bytes(exported)
        return broker, ready[1]

    def connect(self, port, certificate):
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(self.directory / "broker.pem"))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        domain.set_credentials(*certificate, None)
        address = f"amqps://localhost:{port}"
        return BlockingConnection(address, timeout=PATIENCE, ssl_domain=domain, allowed_mechs="EXTERNAL")


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def broker(site):
    process, site.port = site.start()
    yield process
    process.terminate()
    process.wait()
    process.stdout.close()


def exchange(connection):
    """Sends a message to `orders` and receives it, without a token."""
    sent = message("by its certificate")
    sender = connection.create_sender("orders")
    sender.send(sent)
    receiver = connection.create_receiver("orders", credit=1)
    assert receiver.receive().id == sent.id
    receiver.accept()
    sender.close()
    receiver.close()


def test_a_client_has_the_rights_of_its_certificate_and_none_without_a_rule(site, broker):
    worker = site.connect(site.port, site.certificate("worker", "first"))
    exchange(worker)
    worker.close()
    stranger = site.connect(site.port, site.certificate("stranger", "first"))
    with pytest.raises(LinkDetached, match="amqp:unauthorized-access"):
        stranger.create_sender("orders")
    stranger.close()


def test_another_authority_counts_for_connections_that_begin_later(site, broker):
    certificate = site.certificate("worker", "first")
    before = site.connect(site.port, certificate)
    exchange(before)
    site.trust("second")
    broker.send_signal(signal.SIGHUP)
    worker = site.certificate("worker", "second")
    exchange(connected_in_time(site, worker))
    exchange(before)
    before.close()
    with pytest.raises(ConnectionException):
        exchange(site.connect(site.port, site.certificate("worker", "first")))


def connected_in_time(site, certificate):
    """A connection, once the broker has read the file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return site.connect(site.port, certificate)
        except ConnectionException:
            if time.monotonic() > deadline:
                raise
