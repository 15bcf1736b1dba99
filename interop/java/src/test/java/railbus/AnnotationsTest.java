package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.qpid.proton.Proton;
import org.apache.qpid.proton.message.Message;
import org.junit.jupiter.api.Test;

/** Annotations: which ones a message carries, by how it came here and how it is looked at. */
class AnnotationsTest {
    /** What a peek shows as the end of a lock that nobody has. */
    static final OffsetDateTime NOT_LOCKED = OffsetDateTime.of(1, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

    private static final String ENQUEUED_TIME = "x-opt-enqueued-time";
    private static final String SEQUENCE_NUMBER = "x-opt-sequence-number";
    private static final String LOCKED_UNTIL = "x-opt-locked-until";
    private static final String STATE = "x-opt-message-state";
    private static final String SCHEDULED_TIME = "x-opt-scheduled-enqueue-time";
    private static final String ENQUEUED_NUMBER = "x-opt-enqueue-sequence-number";
    private static final String LOCK_TOKEN = "x-opt-lock-token";

    private static void assertAnnotations(ServiceBusReceivedMessage received, String... keys) {
        assertEquals(Set.of(keys), received.getRawAmqpMessage().getMessageAnnotations().keySet());
    }

    private static Map<String, Object> deliveryAnnotations(ServiceBusReceivedMessage received) {
        return received.getRawAmqpMessage().getDeliveryAnnotations();
    }

    @Test
    void aPlainDeliveryHasItsTimeNumberAndLock() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL);
            assertEquals(Map.of(LOCK_TOKEN, UUID.fromString(received.getLockToken())), deliveryAnnotations(received));
            receiver.complete(received);
        }
    }

    @Test
    void aDeliveryToDeleteHasNoLock() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("body"));
            ServiceBusReceivedMessage received =
                receiveOne(queue.receiver(ServiceBusReceiveMode.RECEIVE_AND_DELETE, SubQueue.NONE));
            assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER);
            assertEquals(Map.of(), deliveryAnnotations(received));
            assertEquals(new UUID(0, 0), UUID.fromString(received.getLockToken()));
        }
    }

    @Test
    void aDeferredMessageHasAStateAndALock() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("later"));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            receiver.defer(received);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(received.getSequenceNumber());
            assertAnnotations(deferred, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE);
            assertEquals(Set.of(LOCK_TOKEN), deliveryAnnotations(deferred).keySet());
            assertEquals(ServiceBusMessageState.DEFERRED, deferred.getState());
            assertTrue(deferred.getLockedUntil().isAfter(OffsetDateTime.now()));
            receiver.complete(deferred);
        }
    }

    @Test
    void aPeekedMessageIsLockedUntilItsDeadlineOrTheYearOne() {
        try (Queue queue = Queue.cleared("peeked")) {
            queue.send(message("locked"), message("not locked"));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            List<ServiceBusReceivedMessage> peeked = queue.peek();
            for (ServiceBusReceivedMessage one : peeked) {
                assertAnnotations(one, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE);
                assertEquals(Map.of(), deliveryAnnotations(one));
                assertEquals(ServiceBusMessageState.ACTIVE, one.getState());
            }
            // The broker reckons each deadline from the time that is left, in whole milliseconds.
            Duration difference = Duration.between(received.getLockedUntil(), peeked.get(0).getLockedUntil()).abs();
            assertTrue(difference.toMillis() < 100, difference::toString);
            assertEquals(NOT_LOCKED, peeked.get(1).getLockedUntil());
            receiver.complete(received);
        }
    }

    @Test
    void aMessageThatWasScheduledSaysSo() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = new Queue("orders", broker.connectionString)) {
            OffsetDateTime later = OffsetDateTime.now().plusHours(1);
            queue.send(message("by property").setScheduledEnqueueTime(later));
            queue.sender().scheduleMessage(message("by operation"), later);
            for (ServiceBusReceivedMessage waiting : queue.peek()) {
                assertEquals(ServiceBusMessageState.SCHEDULED, waiting.getState());
                assertEquals(NOT_LOCKED, waiting.getLockedUntil());
            }
            broker.advance("PT61M");
            for (ServiceBusReceivedMessage received : queue.take(2)) {
                assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, SCHEDULED_TIME, STATE);
                assertEquals(ServiceBusMessageState.SCHEDULED, received.getState());
            }
            queue.send(message("past").setScheduledEnqueueTime(OffsetDateTime.now().minusHours(1)));
            ServiceBusReceivedMessage received = queue.take(1).get(0);
            assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, SCHEDULED_TIME);
            assertEquals(ServiceBusMessageState.ACTIVE, received.getState());
        }
    }

    @Test
    void aForwardedMessageHasTheNumberOfItsFirstEntity() {
        try (Queue source = Queue.of("forward"); Queue target = Queue.cleared("target")) {
            source.send(message("body"));
            ServiceBusReceivedMessage received = target.take(1).get(0);
            assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, ENQUEUED_NUMBER);
            assertTrue(received.getEnqueuedSequenceNumber() > 0);
        }
    }

    /** The SDK sends no message annotations but its own. */
    @Test
    void theSendersAnnotationsArrive() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            UUID token = UUID.randomUUID();
            sent.getRawAmqpMessage().getDeliveryAnnotations()
                .putAll(Map.of("hop", 3L, "by", "courier", LOCK_TOKEN, token));
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(Map.of("hop", 3L, "by", "courier", LOCK_TOKEN, UUID.fromString(received.getLockToken())),
                deliveryAnnotations(received));
            assertNotEquals(token.toString(), received.getLockToken());
            receiver.complete(received);
        }
    }

    /** The SDK shows it with an empty body of bytes. */
    @Test
    void aMessageWithoutABodyIsShownWithAnEmptyOne() throws Exception {
        try (Queue queue = Queue.cleared("plain"); PlainSender sender = new PlainSender(queue.name)) {
            Message sent = Proton.message();
            sent.setMessageId("signal");
            sender.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage peeked = receiver.peekMessage();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            receiver.defer(received);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(received.getSequenceNumber());
            for (ServiceBusReceivedMessage one : List.of(peeked, received, deferred)) {
                assertEquals("signal", one.getMessageId());
                assertEquals(0, one.getBody().toBytes().length);
            }
            receiver.complete(deferred);
        }
    }
}
