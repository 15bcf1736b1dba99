"""Transactions as AMQP 1.0 has them (part 4): a coordinator link, and states that hold at the commit."""

from proton import Delivery
from proton.handlers import TransactionHandler

from support import message

PN_TRANSACTIONAL = 0x34


class Controller(TransactionHandler):
    """Declares and discharges transactions one at a time; every step awaits the broker's answer."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        self.answer = None

    def declare(self):
        transaction = self.connection.container.declare_transaction(self.connection.conn, handler=self)
        assert self.awaited("declaring") == "declared"
        return transaction

    def discharge(self, transaction, fail=False):
        """How the discharge ended, and the condition if it was refused."""
        transaction.discharge(fail)
        ended = self.awaited("discharging")
        condition = transaction._discharge.remote.condition
        return ended, condition and condition.name

    def awaited(self, what):
        self.connection.wait(lambda: self.answer, msg=what)
        answer, self.answer = self.answer, None
        return answer

    def on_transaction_declared(self, event):
        self.answer = "declared"

    def on_transaction_declare_failed(self, event):
        self.answer = "declare failed"

    def on_transaction_committed(self, event):
        self.answer = "committed"

    def on_transaction_aborted(self, event):
        self.answer = "aborted"

    def on_transaction_commit_failed(self, event):
        self.answer = "commit failed"


def send_within(transaction, queue, sent):
    """Sends within the transaction and awaits the broker's answer: the transaction's state around an outcome."""
    sender = queue.sender()
    delivery = transaction.send(sender.link, sent)
    queue.connection.wait(lambda: delivery.remote_state, msg="sending")
    assert delivery.remote_state == PN_TRANSACTIONAL
    txn_id, outcome = delivery.remote.data
    assert txn_id == transaction.id
    return outcome


def accept_within(transaction, receiver, received):
    """Accepts within the transaction; the broker answers with the same state and does not settle."""
    transaction.accept(received.delivery)
    receiver.connection.wait(lambda: received.delivery.remote_state, msg="accepting")
    assert received.delivery.remote_state == PN_TRANSACTIONAL
    assert received.delivery.remote.data[0] == transaction.id
    assert not received.delivery.settled


def test_a_commit_sends_and_settles_across_queues(connection, plain, compete):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    controller = Controller(connection)
    transaction = controller.declare()
    assert len(transaction.id) == 16
    sent = message()
    send_within(transaction, compete, sent)
    accept_within(transaction, receiver, received)
    assert compete.peek() == []
    assert controller.discharge(transaction) == ("committed", None)
    connection.wait(lambda: received.delivery.settled, msg="settling for good")
    assert received.delivery.remote_state == Delivery.ACCEPTED
    assert plain.peek() == []
    assert [one.id for one in compete.take()] == [sent.id]


def test_after_a_rollback_the_message_is_still_locked_and_can_be_released(connection, plain, compete):
    plain.send(message())
    receiver = plain.receiver()
    received = receiver.receive()
    controller = Controller(connection)
    transaction = controller.declare()
    send_within(transaction, compete, message())
    accept_within(transaction, receiver, received)
    with plain.management() as management:
        assert management.update_disposition("completed", received.token).condition == "amqp:resource-locked"
    # Proton itself releases what it has accepted within a transaction that ends so.
    assert controller.discharge(transaction, fail=True) == ("aborted", None)
    assert compete.peek() == []
    again = receiver.receive()
    assert again.number == received.number
    assert again.message.delivery_count == 0
    receiver.complete(again)


def test_a_transaction_that_never_was(connection, plain):
    controller = Controller(connection)
    transaction = controller.declare()
    known, transaction.id = transaction.id, b"0123456789abcdef"
    sender = plain.sender()
    delivery = transaction.send(sender.link, message())
    connection.wait(lambda: delivery.remote_state, msg="sending")
    assert delivery.remote_state == Delivery.REJECTED
    assert delivery.remote.condition.name == "amqp:transaction:unknown-id"
    assert controller.discharge(transaction) == ("commit failed", "amqp:transaction:unknown-id")
    transaction.id = known
    assert controller.discharge(transaction) == ("committed", None)
    assert plain.peek() == []


def test_the_end_of_a_connection_rolls_back(connection, plain):
    from support import Queue, connect

    other = connect()
    transaction = Controller(other).declare()
    send_within(transaction, Queue(other, plain.name), message())
    other.close()
    assert plain.peek() == []
