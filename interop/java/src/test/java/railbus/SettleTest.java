package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.assertNothingComes;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * Settling: complete, abandon, dead-letter, defer; the delivery count and the limit of deliveries. This SDK
 * shows the count of failed deliveries before the present one (docs/spec/amqp.md#4.4).
 */
class SettleTest {
    @Test
    void aCompletedMessageNeverComesBack() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            receiver.complete(receiveOne(receiver));
            queue.assertEmpty();
            assertTrue(queue.peekDead().isEmpty());
        }
    }

    @Test
    void anAbandonedMessageComesBackWithItsCountRaisedAndPropertiesModified() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            sent.getApplicationProperties().putAll(Map.of("kept", "old", "changed", "old"));
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage first = receiveOne(receiver);
            assertEquals(0, first.getDeliveryCount());
            receiver.abandon(first, new AbandonOptions().setPropertiesToModify(Map.of("changed", "new", "added", 7L)));
            ServiceBusReceivedMessage second = receiveOne(receiver);
            assertEquals(sent.getMessageId(), second.getMessageId());
            assertEquals(first.getSequenceNumber(), second.getSequenceNumber());
            assertEquals(1, second.getDeliveryCount());
            assertNotEquals(first.getLockToken(), second.getLockToken());
            assertEquals(Map.of("kept", "old", "changed", "new", "added", 7L), second.getApplicationProperties());
            receiver.complete(second);
        }
    }

    @Test
    void theDeadLetterQueueTellsReasonDescriptionAndModifiedProperties() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("bad");
            sent.getApplicationProperties().put("kept", "yes");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            receiver.deadLetter(received, new DeadLetterOptions().setDeadLetterReason("Unreadable")
                .setDeadLetterErrorDescription("The body is not JSON.").setPropertiesToModify(Map.of("stage", "parse")));
            ServiceBusReceivedMessage dead = queue.takeDead();
            assertEquals(sent.getMessageId(), dead.getMessageId());
            assertEquals(received.getSequenceNumber(), dead.getSequenceNumber());
            assertEquals("Unreadable", dead.getDeadLetterReason());
            assertEquals("The body is not JSON.", dead.getDeadLetterErrorDescription());
            assertEquals("yes", dead.getApplicationProperties().get("kept"));
            assertEquals("parse", dead.getApplicationProperties().get("stage"));
            queue.assertEmpty();
        }
    }

    @Test
    void aMessageCanBeDeadLetteredWithoutAReason() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            receiver.deadLetter(receiveOne(receiver));
            assertEquals(sent.getMessageId(), queue.takeDead().getMessageId());
        }
    }

    @Test
    void aDeadLetterIsReceivedInPeekLockAndCompleted() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            receiver.deadLetter(receiveOne(receiver));
            ServiceBusReceiverClient deadReceiver = queue.deadReceiver();
            deadReceiver.complete(receiveOne(deadReceiver));
            assertTrue(queue.peekDead().isEmpty());
        }
    }

    @Test
    void aDeferredMessageComesOnlyByItsNumber() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("later");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            long number = deferOne(receiver);
            assertEquals(List.of(ServiceBusMessageState.DEFERRED), states(queue));
            assertNothingComes(receiver);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(number);
            assertEquals(sent.getMessageId(), deferred.getMessageId());
            receiver.complete(deferred);
            queue.assertEmpty();
        }
    }

    @Test
    void aDeferRaisesTheDeliveryCountAndDoesNotDeadLetter() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("later"));
            ServiceBusReceiverClient receiver = queue.receiver();
            long number = deferOne(receiver);
            assertEquals(1, queue.peek().get(0).getDeliveryCount());
            // Three defers reach the queue's limit of deliveries, which a defer does not mind.
            for (int expected = 1; expected < 3; expected++) {
                ServiceBusReceivedMessage again = receiver.receiveDeferredMessage(number);
                assertEquals(expected, again.getDeliveryCount());
                receiver.defer(again);
            }
            ServiceBusReceiverClient deleting =
                queue.receiver(ServiceBusReceiveMode.RECEIVE_AND_DELETE, SubQueue.NONE);
            assertEquals(3, deleting.receiveDeferredMessage(number).getDeliveryCount());
            queue.assertEmpty();
        }
    }

    @Test
    void deadLetteringDoesNotRaiseTheDeliveryCount() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("later"));
            ServiceBusReceiverClient receiver = queue.receiver();
            receiver.deadLetter(receiver.receiveDeferredMessage(deferOne(receiver)));
            assertEquals(1, queue.takeDead().getDeliveryCount());
        }
    }

    @Test
    void aDeferredMessageCanBeAbandonedAndDeadLettered() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("later"));
            ServiceBusReceiverClient receiver = queue.receiver();
            long number = deferOne(receiver);
            receiver.abandon(receiver.receiveDeferredMessage(number));
            assertEquals(List.of(ServiceBusMessageState.DEFERRED), states(queue));
            receiver.deadLetter(receiver.receiveDeferredMessage(number), new DeadLetterOptions()
                .setDeadLetterReason("Deferred too long").setDeadLetterErrorDescription("Given up."));
            ServiceBusReceivedMessage dead = queue.takeDead();
            assertEquals("Deferred too long", dead.getDeadLetterReason());
            assertEquals("Given up.", dead.getDeadLetterErrorDescription());
        }
    }

    /** The SDK takes the condition {@code message-not-found}, and no other, for an empty answer. */
    @Test
    void anUnknownDeferredNumberIsNotFound() {
        try (Queue queue = Queue.cleared("plain")) {
            for (long missing : new long[] {1L << 40, -1}) {
                assertEquals(0, queue.receiver().receiveDeferredMessageBatch(List.of(missing)).stream().count());
            }
        }
    }

    @Test
    void threeAbandonedDeliveriesDeadLetterAMessage() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            for (int expected = 0; expected < 3; expected++) {
                ServiceBusReceivedMessage received = receiveOne(receiver);
                assertEquals(expected, received.getDeliveryCount());
                receiver.abandon(received);
            }
            ServiceBusReceivedMessage dead = queue.takeDead();
            assertEquals(sent.getMessageId(), dead.getMessageId());
            assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
            assertEquals("Message could not be consumed after 3 delivery attempts.",
                dead.getDeadLetterErrorDescription());
            queue.assertEmpty();
        }
    }

    private static long deferOne(ServiceBusReceiverClient receiver) {
        ServiceBusReceivedMessage received = receiveOne(receiver);
        receiver.defer(received);
        return received.getSequenceNumber();
    }

    private static List<ServiceBusMessageState> states(Queue queue) {
        return queue.peek().stream().map(ServiceBusReceivedMessage::getState).toList();
    }
}
