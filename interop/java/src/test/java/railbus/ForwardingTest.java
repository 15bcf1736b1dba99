package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import org.junit.jupiter.api.Test;

/** Forwarding: messages and dead letters go on to another queue by themselves. */
class ForwardingTest {
    @Test
    void aMessageArrivesWhereItsQueueForwardsTo() {
        try (Queue source = Queue.of("forward"); Queue target = Queue.cleared("target")) {
            ServiceBusMessage sent = message("hello");
            source.send(sent);
            ServiceBusReceivedMessage received = target.take(1).get(0);
            assertEquals(sent.getMessageId(), received.getMessageId());
            assertEquals("hello", received.getBody().toString());
            assertTrue(received.getEnqueuedSequenceNumber() > 0);
        }
    }

    @Test
    void aDeadLetterArrivesWithItsReasonAndItsSource() {
        try (Queue source = Queue.of("mortal"); Queue target = Queue.cleared("target")) {
            ServiceBusMessage sent = message("doomed");
            source.send(sent);
            ServiceBusReceiverClient receiver = source.receiver();
            receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions().setDeadLetterReason("broken"));
            ServiceBusReceivedMessage dead = target.take(1).get(0);
            assertEquals(sent.getMessageId(), dead.getMessageId());
            assertEquals("broken", dead.getDeadLetterReason());
            assertEquals(source.name, dead.getDeadLetterSource());
        }
    }

    @Test
    void aReceiverWhereMessagesGoOnIsRefused() {
        try (Queue source = Queue.of("forward")) {
            Throwable refused = assertThrows(RuntimeException.class, () -> receiveOne(source.receiver()));
            while (refused.getCause() != null) {
                refused = refused.getCause();
            }
            String told = refused.getMessage();
            assertTrue(told.contains("auto-forwarding"), told);
        }
    }
}
