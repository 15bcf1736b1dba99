"""One broker: a process of its own that ends with this one."""

import json
import os
import re
import subprocess
import tempfile
import weakref

from .namespace import BrokerError, create_namespace, iso, request
from .program import find_program

READY = re.compile(r'railbus ready listen=([^, ]+).* connection-string="([^"]+)"')
#: The settings of a broker are what `start` is called with, whatever is configured on the machine.
IGNORED_VARIABLES = re.compile(r"RAILBUS_.*|CONFIG_PATH|EMULATOR_HTTP_PORT")

#: The brokers that this process has started and not stopped.
running = weakref.WeakSet()


def start(entities=None, *, port=0, arguments=()):
    """Starts a broker and waits until it is ready.

    `entities` names a file: the Service Bus emulator's `Config.json`, or TOML or JSON of Railbus's own shape. It may
    also be a `dict` of that shape, such as `{"queues": [{"name": "orders"}]}`. `arguments` are further options of
    `railbus serve`.
    """
    if isinstance(entities, dict):
        with tempfile.NamedTemporaryFile("w", prefix="railbus-", suffix=".json") as file:
            json.dump(entities, file)
            file.flush()
            return Broker(file.name, port, arguments)
    return Broker(entities, port, arguments)


class Broker:
    """A running broker. Leaving a `with` block stops it."""

    def __init__(self, entities, port, arguments):
        command = [find_program(), "serve", "--ephemeral", "--virtual-clock", "--exit-on-stdin-close"]
        command += ["--config", os.devnull, "--listen", f"127.0.0.1:{port}"]
        if entities is not None:
            command += ["--entities", os.fspath(entities)]
        # It has no name, so nothing is left of it.
        self._log = tempfile.TemporaryFile()
        self._process = self._spawn(command + list(arguments))
        ready = READY.match(self._process.stdout.readline())
        if not ready:
            code = self.stop()
            raise BrokerError(f"railbus ended with exit code {code} before it was ready:\n{self.log()}")
        #: Host and port of the first listener; HTTP and AMQP share it.
        self.address = ready[1]
        #: What the Azure SDKs take.
        self.connection_string = ready[2]

    def _spawn(self, command):
        environment = {name: value for name, value in os.environ.items() if not IGNORED_VARIABLES.fullmatch(name)}
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                text=True,
                # Ctrl-C is for the tests, which then stop their brokers.
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise BrokerError(f"{command[0]} cannot be started: {error.strerror}") from error
        running.add(self)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops the broker and returns its exit code, which is 0 unless something went wrong."""
        self._process.stdin.close()
        code = self._process.wait()
        self._process.stdout.close()
        running.discard(self)
        return code

    def create_namespace(self, name=None, *, like="default"):
        """Makes a namespace with the entities of this broker and no messages; see `railbus.create_namespace`."""
        return create_namespace(self.address, name, like=like)

    def advance(self, duration):
        """Lets time pass in all namespaces, as a `timedelta` or in ISO 8601 (`PT5M`).

        What becomes due has happened on return.
        """
        return self._set_clock({"advance": iso(duration)})

    def freeze(self, frozen=True):
        """Stops broker time until it is advanced, or lets it run again."""
        return self._set_clock({"freeze": frozen})

    def log(self, since=0):
        """What the broker has logged, from the byte `since` on. `RUST_LOG` says how much that is."""
        size = self.log_size()
        return os.pread(self._log.fileno(), max(size - since, 0), since).decode(errors="replace")

    def log_size(self):
        """The bytes that the broker has logged, for `log(since)`."""
        return os.fstat(self._log.fileno()).st_size

    def _set_clock(self, change):
        return request(self.address, "POST", "clock", change)


def _let_go_in_child():
    """A forked child must not hold the pipe by whose end the broker knows that this process has died."""
    for broker in running:
        broker._process.stdin.close()


os.register_at_fork(after_in_child=_let_go_in_child)
