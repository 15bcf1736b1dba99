package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.eventually;
import static railbus.Queue.message;

import com.azure.core.amqp.models.AmqpMessageProperties;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
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
        AmqpMessageProperties properties = received.getRawAmqpMessage().getProperties();
        assertEquals(received.getExpiresAt().toInstant(), properties.getAbsoluteExpiryTime().toInstant());
        // The sender gave no time of creation.
        assertEquals(received.getEnqueuedTime().toInstant(), properties.getCreationTime().toInstant());
    }

    @Test
    void theCreationTimeOfTheSenderStaysAndTheExpiryFollowsIt() {
        OffsetDateTime creation = OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.MILLIS).minusMinutes(10);
        ServiceBusMessage sent = message("five minutes").setTimeToLive(Duration.ofMinutes(5));
        sent.getRawAmqpMessage().getProperties().setCreationTime(creation);
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(sent);
            AmqpMessageProperties properties = queue.take(1).get(0).getRawAmqpMessage().getProperties();
            assertEquals(creation.toInstant(), properties.getCreationTime().toInstant());
            assertEquals(creation.plusMinutes(5).toInstant(), properties.getAbsoluteExpiryTime().toInstant());
        }
    }

    @Test
    void aMessageThatIsSentAgainKeepsItsTimeToLive() throws Exception {
        assertSentAgain(message("ten hours").setTimeToLive(Duration.ofHours(10)), Duration.ofHours(10));
        // That of the queue.
        assertSentAgain(message("a day"), Duration.ofDays(1));
    }

    private static void assertSentAgain(ServiceBusMessage sent, Duration timeToLive) throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = new Queue("orders", broker.connectionString)) {
            queue.send(sent);
            OffsetDateTime created = queue.peek().get(0).getEnqueuedTime();
            for (int time = 0; time < 3; time++) {
                broker.advance("PT2H");
                ServiceBusReceivedMessage received = queue.take(1).get(0);
                AmqpMessageProperties properties = received.getRawAmqpMessage().getProperties();
                assertEquals(timeToLive, received.getTimeToLive());
                // This SDK copies the time of creation too.
                assertEquals(created.toInstant(), properties.getCreationTime().toInstant());
                assertEquals(created.plus(timeToLive).toInstant(), properties.getAbsoluteExpiryTime().toInstant());
                queue.send(new ServiceBusMessage(received));
            }
        }
    }
}
