package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import org.junit.jupiter.api.Test;

/** Forwarding: messages go on to another queue by themselves. */
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
}
