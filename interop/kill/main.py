"""The kill test: nothing acknowledged is lost when the broker gets SIGKILL, and nothing done is undone.

Twenty times: senders and receivers work, the broker is killed at a random moment and started again on the
same directory, and the whole queue is counted against what the clients were told. Then the queue is
drained, and the broker is stopped politely and started once more, to find it empty.
"""

import faulthandler
import logging
import os
import random
import shutil
import sys
import tempfile
import time

from azure.servicebus import ServiceBusSubQueue

from broker import PATIENCE, Broker
from ledger import Ledger, Violation
from workers import Gate, Receiver, Sender, drain, peek_all

SENDERS = 6
RECEIVERS = 3
LONGEST_RUN_S = 0.8


def main():
    seed = int(os.environ.get("RAILBUS_KILL_SEED") or random.SystemRandom().randrange(2**32))
    cycles = int(os.environ.get("RAILBUS_KILL_CYCLES", "20"))
    print(f"kill test: seed {seed}, {cycles} cycles", flush=True)
    # The SDK logs every broken connection as an error; here they are the point.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    directory = tempfile.mkdtemp(prefix="railbus-kill-")
    broker = Broker(directory)
    try:
        run(broker, random.Random(seed), cycles)
    except Exception:
        print(f"seed {seed}; the data directory and the broker's log are kept in {directory}", file=sys.stderr)
        raise
    finally:
        broker.abandon()
    shutil.rmtree(directory)


def run(broker, rng, cycles):
    ledger = Ledger()
    failures = []
    gate = Gate(SENDERS + RECEIVERS)
    workers = [Sender(broker, gate, ledger, failures) for _ in range(SENDERS)]
    workers += [Receiver(broker, gate, ledger, failures) for _ in range(RECEIVERS)]
    broker.start()
    for worker in workers:
        worker.start()
    try:
        for cycle in range(1, cycles + 1):
            kill_and_count(broker, gate, ledger, rng, workers)
            raise_first(failures)
            print(f"cycle {cycle}: {len(ledger.remaining())} waiting, {ledger.sends} sent, "
                  f"{ledger.completions} completed", flush=True)
    finally:
        gate.end()
    finish(broker, ledger)
    raise_first(failures)
    report(ledger)


def kill_and_count(broker, gate, ledger, rng, workers):
    before = ledger.sends
    gate.open()
    wait_for_traffic(ledger, before, workers)
    time.sleep(rng.uniform(0, LONGEST_RUN_S))
    broker.kill()
    gate.shut(PATIENCE)
    broker.start()
    ledger.count(peek_all(broker))


def wait_for_traffic(ledger, before, workers):
    """A cycle counts from its first acknowledged message."""
    deadline = time.monotonic() + PATIENCE
    while ledger.sends == before:
        if time.monotonic() > deadline:
            faulthandler.dump_traceback()
            errors = {repr(worker.last_error) for worker in workers}
            raise Violation(f"no send returned within {PATIENCE} s; the clients' last errors: {errors}")
        time.sleep(0.001)


def finish(broker, ledger):
    expected = ledger.remaining()
    drained = drain(broker, ledger, len(expected))
    if sorted(drained) != sorted(expected):
        raise Violation("the messages delivered at the end are not those counted")
    ledger.count(peek_all(broker))
    dead = peek_all(broker, ServiceBusSubQueue.DEAD_LETTER)
    if dead:
        raise Violation(f"{len(dead)} messages are in the dead-letter queue")
    code = broker.stop()
    if code != 0:
        raise Violation(f"asked to stop, the broker exited with {code}")
    broker.start()
    ledger.count(peek_all(broker))
    broker.stop()


def raise_first(failures):
    if failures:
        raise failures[0]


def report(ledger):
    for state, number in sorted(ledger.tally().items()):
        print(f"{number:7} {state}")
    if not ledger.completions:
        raise Violation("no completion returned in the whole run")
    print("kill test passed")


if __name__ == "__main__":
    main()
