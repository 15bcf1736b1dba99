package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.assertNothingComes;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Transactions: sends and settlements that all happen at the commit, or not at all. Of the SDKs tested here, this one
 * and that of .NET have them (docs/spec/amqp.md#8).
 */
class TransactionTest {
    /** A sender and a receiver that share a connection, as a transaction needs it. */
    private static final class Pair implements AutoCloseable {
        final ServiceBusSenderClient sender;
        final ServiceBusReceiverClient receiver;

        Pair(ServiceBusClientBuilder builder, Queue from, Queue to) {
            receiver = builder.receiver().queueName(from.name).maxAutoLockRenewDuration(Duration.ZERO).buildClient();
            sender = builder.sender().queueName(to.name).buildClient();
        }

        static Pair of(Queue queue) {
            return new Pair(builder(), queue, queue);
        }

        static Pair across(Queue from, Queue to) {
            return new Pair(builder().enableCrossEntityTransactions(), from, to);
        }

        private static ServiceBusClientBuilder builder() {
            return new ServiceBusClientBuilder().connectionString(Queue.connectionString());
        }

        CompleteOptions completing(ServiceBusTransactionContext transaction) {
            return new CompleteOptions().setTransactionContext(transaction);
        }

        @Override
        public void close() {
            sender.close();
            receiver.close();
        }
    }

    @Test
    void aCommitSendsAndCompletes() {
        try (Queue queue = Queue.cleared("plain"); Pair pair = Pair.of(queue)) {
            queue.send(message("request"));
            ServiceBusReceivedMessage request = receiveOne(pair.receiver);
            ServiceBusMessage reply = message("reply");
            ServiceBusTransactionContext transaction = pair.sender.createTransaction();
            pair.sender.sendMessage(reply, transaction);
            pair.receiver.complete(request, pair.completing(transaction));
            assertEquals(List.of(request.getMessageId()), Queue.receivedIds(queue.peek()));
            pair.sender.commitTransaction(transaction);
            assertEquals(List.of(reply.getMessageId()), Queue.receivedIds(queue.peek()));
        }
    }

    /** This SDK takes the message for settled, whatever became of the transaction, so its lock has to run out. */
    @Test
    void aRollbackDropsWhatWasSentAndKeepsTheLock() {
        try (Queue queue = Queue.cleared("shortlock"); Pair pair = Pair.of(queue)) {
            queue.send(message("request"));
            ServiceBusReceivedMessage request = receiveOne(pair.receiver);
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.sender.sendMessage(message("reply"), transaction);
            pair.receiver.complete(request, pair.completing(transaction));
            pair.receiver.rollbackTransaction(transaction);
            assertEquals(List.of(request.getMessageId()), Queue.receivedIds(queue.peek()));
            assertNothingComes(queue.receiver());
            ServiceBusReceivedMessage again = receiveOne(pair.receiver);
            assertTrue(OffsetDateTime.now().isAfter(request.getLockedUntil()));
            assertEquals(1, again.getDeliveryCount());
            pair.receiver.complete(again);
            queue.assertEmpty();
        }
    }

    @Test
    void aCommitMovesAMessageFromOneQueueToAnother() {
        try (Queue from = Queue.cleared("plain"); Queue to = Queue.cleared("compete"); Pair pair = Pair.across(from, to)) {
            from.send(message("step one"));
            ServiceBusReceivedMessage received = receiveOne(pair.receiver);
            ServiceBusMessage next = message("step two");
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.receiver.complete(received, pair.completing(transaction));
            pair.sender.sendMessage(next, transaction);
            to.assertEmpty();
            pair.receiver.commitTransaction(transaction);
            from.assertEmpty();
            assertEquals(List.of(next.getMessageId()), Queue.receivedIds(to.take(1)));
        }
    }

    @Test
    void aRollbackLeavesBothQueuesAsTheyWere() {
        try (Queue from = Queue.cleared("shortlock"); Queue to = Queue.cleared("compete"); Pair pair = Pair.across(from, to)) {
            from.send(message("step one"));
            ServiceBusReceivedMessage received = receiveOne(pair.receiver);
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.receiver.complete(received, pair.completing(transaction));
            pair.sender.sendMessage(message("step two"), transaction);
            pair.receiver.rollbackTransaction(transaction);
            to.assertEmpty();
            assertEquals(List.of(received.getMessageId()), Queue.receivedIds(from.take(1)));
            from.assertEmpty();
        }
    }

    @Test
    void messagesAreAbandonedDeferredAndDeadLetteredTogether() {
        try (Queue queue = Queue.cleared("plain"); Pair pair = Pair.of(queue)) {
            queue.send(message("one"), message("two"), message("three"));
            List<ServiceBusReceivedMessage> received = Queue.receive(pair.receiver, 3);
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.receiver.abandon(received.get(0), new AbandonOptions().setTransactionContext(transaction));
            pair.receiver.defer(received.get(1), new DeferOptions().setTransactionContext(transaction));
            pair.receiver.deadLetter(received.get(2), new DeadLetterOptions().setTransactionContext(transaction)
                .setDeadLetterReason("Unreadable"));
            assertTrue(queue.peekDead().isEmpty());
            pair.receiver.commitTransaction(transaction);

            assertEquals("Unreadable", queue.takeDead().getDeadLetterReason());
            List<ServiceBusMessageState> states = queue.peek().stream().map(ServiceBusReceivedMessage::getState).toList();
            assertEquals(List.of(ServiceBusMessageState.ACTIVE, ServiceBusMessageState.DEFERRED), states);
            ServiceBusReceivedMessage again = receiveOne(pair.receiver);
            assertEquals(received.get(0).getMessageId(), again.getMessageId());
            assertEquals(1, again.getDeliveryCount());
            pair.receiver.complete(again);
        }
    }

    @Test
    void aDeferredMessageIsCompletedByTokenWithinATransaction() {
        try (Queue queue = Queue.cleared("plain"); Pair pair = Pair.of(queue)) {
            queue.send(message("later"));
            ServiceBusReceivedMessage first = receiveOne(pair.receiver);
            pair.receiver.defer(first);
            ServiceBusReceivedMessage deferred = pair.receiver.receiveDeferredMessage(first.getSequenceNumber());
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.receiver.complete(deferred, pair.completing(transaction));
            assertEquals(1, queue.peek().size());
            pair.receiver.commitTransaction(transaction);
            queue.assertEmpty();
        }
    }

    @Test
    void aScheduledMessageIsThereOnceItsTransactionIsCommitted() {
        try (Queue queue = Queue.cleared("plain"); Pair pair = Pair.of(queue)) {
            ServiceBusTransactionContext transaction = pair.sender.createTransaction();
            OffsetDateTime tomorrow = OffsetDateTime.now().plusDays(1);
            long number = pair.sender.scheduleMessage(message("tomorrow"), tomorrow, transaction);
            queue.assertEmpty();
            pair.sender.commitTransaction(transaction);
            ServiceBusReceivedMessage scheduled = queue.peek().get(0);
            assertEquals(number, scheduled.getSequenceNumber());
            assertEquals(ServiceBusMessageState.SCHEDULED, scheduled.getState());
            pair.sender.cancelScheduledMessage(number);
            queue.assertEmpty();
        }
    }

    @Test
    void aTransactionIsDischargedOnce() {
        try (Queue queue = Queue.cleared("plain"); Pair pair = Pair.of(queue)) {
            ServiceBusTransactionContext transaction = pair.sender.createTransaction();
            pair.sender.sendMessage(message("once"), transaction);
            pair.sender.commitTransaction(transaction);
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> pair.sender.commitTransaction(transaction));
            assertTrue(refused.getMessage().contains("The transaction is not known on this connection."));
            assertEquals(1, queue.take(1).size());
            queue.assertEmpty();
        }
    }

    @Test
    void aLockThatRanOutBeforeTheCommitTakesEverythingBack() {
        try (Queue queue = Queue.cleared("shortlock"); Pair pair = Pair.of(queue)) {
            queue.send(message("request"));
            ServiceBusReceivedMessage request = receiveOne(pair.receiver);
            ServiceBusTransactionContext transaction = pair.receiver.createTransaction();
            pair.receiver.complete(request, pair.completing(transaction));
            pair.sender.sendMessage(message("reply"), transaction);
            Queue.waitUntilPassed(request.getLockedUntil());
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> pair.receiver.commitTransaction(transaction));
            assertTrue(refused.getMessage().contains("a lock was lost before the commit"));
            assertEquals(List.of(request.getMessageId()), Queue.receivedIds(queue.take(1)));
            queue.assertEmpty();
        }
    }
}
