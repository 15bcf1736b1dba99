package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.eventually;
import static railbus.Queue.message;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving. */
class ExpiryTest {
    @Test
    void anExpiredMessageGoesToTheDeadLetterQueue() {
        try (Queue queue = Queue.cleared("ttl")) {
            ServiceBusMessage sent = message("too late").setTimeToLive(Duration.ofSeconds(1));
            queue.send(sent);
            eventually("the expiry", () -> queue.peekDead().size() == 1);
            ServiceBusReceivedMessage dead = queue.takeDead();
            assertEquals(sent.getMessageId(), dead.getMessageId());
            assertEquals("TTLExpiredException", dead.getDeadLetterReason());
            assertEquals("The message expired and was dead lettered.", dead.getDeadLetterErrorDescription());
            queue.assertEmpty();
        }
    }

    @Test
    void theDefaultOfTheQueueDropsAnExpiredMessage() {
        try (Queue queue = Queue.cleared("ttl-drop")) {
            queue.send(message("default"), message("an hour").setTimeToLive(Duration.ofHours(1)));
            eventually("the expiry of both messages", () -> queue.peek().isEmpty());
            assertTrue(queue.peekDead().isEmpty());
        }
    }

    @Test
    void anUnexpiredMessageShowsWhenItWillExpire() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(message("five minutes").setTimeToLive(Duration.ofMinutes(5)), message("default"));
            List<ServiceBusReceivedMessage> received = queue.take(2);
            // The queue's own time to live of one hour is default and ceiling.
            assertExpiry(Duration.ofMinutes(5), received.get(0));
            assertExpiry(Duration.ofHours(1), received.get(1));
        }
    }

    private static void assertExpiry(Duration timeToLive, ServiceBusReceivedMessage received) {
        assertEquals(timeToLive, received.getTimeToLive());
        assertEquals(received.getEnqueuedTime().plus(timeToLive).toInstant(), received.getExpiresAt().toInstant());
        assertEquals(received.getExpiresAt().toInstant(),
            received.getRawAmqpMessage().getProperties().getAbsoluteExpiryTime().toInstant());
    }
}
