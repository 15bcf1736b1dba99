package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.TextMessage;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What the broker writes on a message, and how large one may be. This client looks at no size before it sends. */
class MessageTest {
    /** What {@code interop/railbus.toml} says. */
    private static final int LIMIT = 1 << 20;
    /** What the queue says. */
    private static final long HOUR_MS = 3_600_000;
    /** The client shows an id that is not of its own form with this before it. */
    private static final String NOT_OF_JMS = "ID:AMQP_NO_PREFIX:";

    private static Message next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(Broker.PATIENCE_MS);
        message.acknowledge();
        return message;
    }

    private static Message bytes(Broker broker, byte[] body) throws JMSException {
        BytesMessage message = broker.session.createBytesMessage();
        message.writeBytes(body);
        return message;
    }

    @Test
    void aMessageAboveTheLimitIsRejectedAndTheProducerGoesOn() throws JMSException {
        try (Broker broker = new Broker(); MessageProducer producer = broker.session.createProducer(broker.queue);
            MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
            for (int size : new int[] {LIMIT, LIMIT + 1, 2 * LIMIT}) {
                Message tooLarge = bytes(broker, new byte[size]);
                JMSException refused = assertThrows(JMSException.class, () -> producer.send(tooLarge));
                assertTrue(refused.getMessage().contains("amqp:link:message-size-exceeded"), refused::toString);
            }
            producer.send(broker.session.createTextMessage("small"));
            assertEquals("small", next(consumer).getBody(String.class));
        }
    }

    @Test
    void aMessageOfAlmostTheLimitArrives() throws JMSException {
        // The sections take less than 400 bytes.
        byte[] body = new byte[LIMIT - 400];
        new Random(0).nextBytes(body);
        try (Broker broker = new Broker(); MessageProducer producer = broker.session.createProducer(broker.queue);
            MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
            producer.send(bytes(broker, body));
            assertArrayEquals(body, next(consumer).getBody(byte[].class));
        }
    }

    @Test
    void aMessageWithoutAnIdGetsOneThatStays() throws JMSException {
        try (Broker broker = new Broker(); MessageProducer producer = broker.session.createProducer(broker.queue);
            MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
            producer.setDisableMessageID(true);
            producer.send(broker.session.createMessage());
            producer.send(broker.session.createMessage());
            String first = consumer.receive(Broker.PATIENCE_MS).getJMSMessageID();
            assertTrue(first.matches(NOT_OF_JMS + "[0-9a-fA-F]{32}"), first);
            broker.session.recover();
            Message again = next(consumer);
            assertEquals(2, again.getIntProperty("JMSXDeliveryCount"));
            assertEquals(first, again.getJMSMessageID());
            assertNotEquals(first, next(consumer).getJMSMessageID());
        }
    }

    @Test
    void theExpirationIsTheTimestampAndTheTimeToLive() throws JMSException {
        try (Broker broker = new Broker(); MessageProducer producer = broker.session.createProducer(broker.queue);
            MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
            // The queue's own hour is default and ceiling.
            for (long[] given : new long[][] {{0, HOUR_MS}, {300_000, 300_000}, {2 * HOUR_MS, HOUR_MS}}) {
                producer.setTimeToLive(given[0]);
                producer.setDisableMessageTimestamp(false);
                Message sent = broker.session.createMessage();
                producer.send(sent);
                Message received = next(consumer);
                assertEquals(sent.getJMSTimestamp(), received.getJMSTimestamp());
                assertEquals(sent.getJMSTimestamp() + given[1], received.getJMSExpiration());
                // Without a timestamp of the sender the broker sets one: when it took the message.
                producer.setDisableMessageTimestamp(true);
                long before = System.currentTimeMillis();
                producer.send(broker.session.createMessage());
                received = next(consumer);
                long taken = received.getJMSTimestamp();
                assertTrue(before <= taken && taken <= System.currentTimeMillis(), before + " " + taken);
                assertEquals(taken + given[1], received.getJMSExpiration());
            }
        }
    }

    /** The first has no body section, the second a value that is null. */
    @Test
    void messagesWithoutABodyAndWithoutATextAreShownAsSuch() throws JMSException {
        try (Broker broker = new Broker(); MessageProducer producer = broker.session.createProducer(broker.queue);
            MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
            producer.send(broker.session.createMessage());
            producer.send(broker.session.createTextMessage());
            Message first = next(consumer);
            assertFalse(first instanceof TextMessage || first instanceof BytesMessage, first::toString);
            assertNull(first.getBody(Object.class));
            assertNull(((TextMessage) next(consumer)).getText());
        }
    }
}
