package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import railbus.Broker.OwnQueue;

/**
 * Sessions that use up {@code jms.redeliveryPolicy.maxRedeliveries}. The client is not given such a message again, and
 * settles it by the outcome that {@code jms.redeliveryPolicy.outcome} names.
 */
class RedeliveryPolicyTest {
    private static JMSContext context(String clientId, int redeliveries, String outcome, int prefetch, int mode) {
        Map<String, String> options = new HashMap<>(Map.of(
                "jms.redeliveryPolicy.maxRedeliveries", String.valueOf(redeliveries),
                "jms.prefetchPolicy.all", String.valueOf(prefetch)));
        if (outcome != null) {
            options.put("jms.redeliveryPolicy.outcome", outcome);
        }
        return Client.configured(clientId, options).createContext(mode);
    }

    private static void assertNext(String text, int delivery, JMSConsumer consumer) throws JMSException {
        Message message = Client.next(consumer);
        assertEquals(text, message.getBody(String.class));
        assertEquals(delivery, message.getIntProperty("JMSXDeliveryCount"));
    }

    private interface After {
        void check(JMSConsumer consumer) throws JMSException;
    }

    private static void useUp(OwnQueue queue, String outcome, int prefetch) throws JMSException {
        useUp(queue, outcome, prefetch, consumer -> assertNull(consumer.receiveNoWait()));
    }

    /** Has a session roll the poison back as often as it may, and then take what is behind it. */
    private static void useUp(OwnQueue queue, String outcome, int prefetch, After after) throws JMSException {
        try (JMSContext plain = Client.context(null);
                JMSContext context = context(null, 1, outcome, prefetch, JMSContext.SESSION_TRANSACTED)) {
            Client.send(plain, queue.name, "poison", "next");
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            for (int delivery = 1; delivery <= 2; delivery++) {
                assertNext("poison", delivery, consumer);
                context.rollback();
            }
            assertEquals("next", Client.text(consumer));
            context.commit();
            after.check(consumer);
        }
    }

    private static void assertNothingIsLeftToReceive(OwnQueue queue) {
        try (JMSContext other = Client.context(null)) {
            assertNull(other.createConsumer(other.createQueue(queue.name)).receiveNoWait());
        }
    }

    /** The number of deliveries that failed, of the only message in a part of a queue. */
    private static int failures(OwnQueue queue, String part) {
        List<Map<String, Object>> messages = queue.messages(part);
        assertEquals(1, messages.size(), messages::toString);
        return ((Number) messages.get(0).get("delivery-count")).intValue();
    }

    private static void assertEmpty(OwnQueue queue, String... parts) {
        for (String part : parts) {
            assertEquals(List.of(), queue.messages(part), part);
        }
    }

    /** Undeliverable here, as the client says unless told otherwise, is a deferral. */
    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void theMessageIsDeferredUnlessTheClientIsToldOtherwise(int prefetch) throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            useUp(queue, null, prefetch);
            assertEquals(3, failures(queue, "deferred"));
            assertEmpty(queue, "active", "dead-letter");
            assertNothingIsLeftToReceive(queue);
            try (JMSContext context = Client.context(null)) {
                QueueBrowser browser = context.createBrowser(context.createQueue(queue.name));
                assertFalse(browser.getEnumeration().hasMoreElements());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void theMessageIsDeadLetteredWhereItIsRejected(int prefetch) throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            useUp(queue, "REJECTED", prefetch);
            assertEquals(2, failures(queue, "dead-letter"));
            assertEmpty(queue, "active", "deferred");
            assertNothingIsLeftToReceive(queue);
            try (JMSContext context = Client.context(null)) {
                JMSConsumer dead =
                        context.createConsumer(context.createQueue(queue.name + "/$DeadLetterQueue"));
                Message letter = Client.next(dead);
                assertEquals("poison", letter.getBody(String.class));
                assertNull(letter.getStringProperty("DeadLetterReason"));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void theMessageIsGoneWhereItIsAccepted(int prefetch) throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            useUp(queue, "ACCEPTED", prefetch);
            assertEmpty(queue, "active", "deferred", "dead-letter");
        }
    }

    /** The client gives it back again and again, and the queue counts. */
    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void theMessageIsDeadLetteredByTheQueueWhereItIsGivenBackAsFailed(int prefetch) throws JMSException {
        try (OwnQueue queue = new OwnQueue("\"max-delivery-count\": 5")) {
            useUp(queue, "MODIFIED_FAILED", prefetch, consumer -> {
                long deadline = System.nanoTime() + Client.PATIENCE_MS * 1_000_000;
                while (queue.messages("dead-letter").isEmpty()) {
                    // The client looks at a message when it is asked for one.
                    assertNull(consumer.receiveNoWait());
                    assertTrue(System.nanoTime() < deadline, "it is not dead-lettered");
                }
            });
            assertEquals(5, failures(queue, "dead-letter"));
            assertEmpty(queue, "active", "deferred");
            try (JMSContext context = Client.context(null)) {
                JMSConsumer dead =
                        context.createConsumer(context.createQueue(queue.name + "/$DeadLetterQueue"));
                assertEquals(
                        "MaxDeliveryCountExceeded", Client.next(dead).getStringProperty("DeadLetterReason"));
            }
        }
    }

    @Test
    void theQueueDeadLettersTheMessageIfItCountsToLess() throws JMSException {
        try (OwnQueue queue = new OwnQueue("\"max-delivery-count\": 2")) {
            useUp(queue, null, 0);
            assertEquals(2, failures(queue, "dead-letter"));
            assertEmpty(queue, "active", "deferred");
        }
    }

    /** A client that recovers keeps the message and counts by itself, so the broker learns of one failure. */
    @Test
    void aSessionThatRecoversTooOftenDefersTheMessage() throws JMSException {
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = context(null, 2, null, 0, JMSContext.CLIENT_ACKNOWLEDGE)) {
            Client.send(context, queue.name, "poison", "next");
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            for (int delivery = 1; delivery <= 3; delivery++) {
                assertNext("poison", delivery, consumer);
                context.recover();
            }
            assertNext("next", 1, consumer);
            context.acknowledge();
            assertEquals(1, failures(queue, "deferred"));
            assertEmpty(queue, "active", "dead-letter");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void aListenerIsNotGivenTheMessageAgain(int prefetch) throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                JMSContext context = context(null, 2, null, prefetch, JMSContext.SESSION_TRANSACTED)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            consumer.setMessageListener(message -> {
                try {
                    String text = message.getBody(String.class);
                    if (text.equals("poison")) {
                        context.rollback();
                    } else {
                        context.commit();
                    }
                    heard.add(text + " " + message.getIntProperty("JMSXDeliveryCount"));
                } catch (JMSException failed) {
                    throw new JMSRuntimeException(failed.getMessage());
                }
            });
            Client.send(sender, queue.name, "poison", "next");
            List<String> all = new ArrayList<>();
            while (!all.contains("next 1")) {
                String next = heard.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
                assertTrue(next != null, () -> "only " + all + " came");
                all.add(next);
            }
            assertEquals(List.of("poison 1", "poison 2", "poison 3", "next 1"), all);
            context.close();
            assertEquals(4, failures(queue, "deferred"));
            assertEmpty(queue, "active", "dead-letter");
        }
    }

    @Test
    void aSubscriptionDefersTheMessageToo() throws JMSException {
        try (JMSContext context = context("patient", 1, null, 0, JMSContext.SESSION_TRANSACTED);
                JMSContext other = Client.context("patient")) {
            Topic topic = context.createTopic("weather");
            JMSConsumer consumer = context.createDurableConsumer(topic, "patient");
            other.createProducer().send(topic, "storm");
            other.createProducer().send(topic, "sun");
            for (int delivery = 1; delivery <= 2; delivery++) {
                assertNext("storm", delivery, consumer);
                context.rollback();
            }
            assertNext("sun", 1, consumer);
            context.commit();
            assertNull(consumer.receiveNoWait());
            consumer.close();
            JMSConsumer after = other.createDurableConsumer(topic, "patient");
            assertNull(after.receiveNoWait());
            after.close();
            other.unsubscribe("patient");
        }
    }
}
