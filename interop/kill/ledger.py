"""What the clients know: which sends and completions returned, and what must therefore be in the queue.

Every message id is sent once. Its state moves forward only: a send or a completion that did not return
leaves a message that may or may not be there; the next count decides which, and from then on it is
known. `count` compares what the broker shows after a restart with what the clients were told.
"""

import hashlib
import threading
from collections import Counter
from enum import Enum


class State(Enum):
    SENDING = "send not returned"
    STORED = "send returned"
    COMPLETING = "completion not returned"
    GONE = "completion returned"
    NEVER = "send not returned, and not stored"


class Violation(AssertionError):
    """The broker broke its promise."""


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.states = {}
        self.gone_at = {}
        self.id_of_number = {}
        self.sends = 0
        self.completions = 0

    def sending(self, message_id):
        with self.lock:
            self.states[message_id] = State.SENDING

    def sent(self, message_id):
        with self.lock:
            self.sends += 1
            # A receiver can be quicker than the sender's own return.
            if self.states[message_id] is State.SENDING:
                self.states[message_id] = State.STORED

    def received(self, message_id, number, link_opened_at):
        """Notes a delivery. A link opened after a completion returned may not deliver that message."""
        with self.lock:
            self.identify(message_id, number)
            gone_at = self.gone_at.get(message_id)
            if gone_at is not None and gone_at < link_opened_at:
                raise Violation(f"{message_id} (number {number}) was delivered after its completion returned")
            if self.states[message_id] is State.NEVER:
                raise Violation(f"{message_id} (number {number}) was absent at a count and is delivered now")
            if self.states[message_id] is State.SENDING:
                self.states[message_id] = State.STORED

    def completing(self, message_id):
        with self.lock:
            self.states[message_id] = State.COMPLETING

    def completed(self, message_id, now):
        with self.lock:
            self.completions += 1
            self.states[message_id] = State.GONE
            self.gone_at[message_id] = now

    def identify(self, message_id, number):
        """A sequence number belongs to one message for ever."""
        known = self.id_of_number.setdefault(number, message_id)
        if known != message_id:
            raise Violation(f"number {number} belongs to {known} and to {message_id}")

    def count(self, present):
        """Checks the whole content of the queue, `(message id, sequence number)` of each, nobody being at work."""
        with self.lock:
            copies = Counter(message_id for message_id, _ in present)
            for message_id, number in present:
                if message_id not in self.states:
                    raise Violation(f"{message_id} (number {number}) was never sent")
                self.identify(message_id, number)
            for message_id, state in self.states.items():
                self.states[message_id] = verdict(message_id, state, copies[message_id])

    def remaining(self):
        """The ids that must be in the queue, after a count."""
        with self.lock:
            return {message_id for message_id, state in self.states.items() if state is State.STORED}

    def tally(self):
        with self.lock:
            return Counter(state.value for state in self.states.values())


def verdict(message_id, state, copies):
    """What is known of a message now that `copies` of it were counted."""
    allowed = {
        State.SENDING: (0, 1),
        State.STORED: (1,),
        State.COMPLETING: (0, 1),
        State.GONE: (0,),
        State.NEVER: (0,),
    }[state]
    if copies not in allowed:
        raise Violation(f"{message_id} is there {copies} times; what the clients know of it: {state.value}")
    if copies == 1:
        return State.STORED
    return State.NEVER if state in (State.SENDING, State.NEVER) else State.GONE


def body_for(message_id):
    """The body of a message, known from its id: 64 bytes to 8 KiB."""
    digest = hashlib.sha256(message_id.encode()).digest()
    return digest * (2 + digest[0])
