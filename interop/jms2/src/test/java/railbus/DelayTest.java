package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;
import railbus.Broker.OwnQueue;

/** Delivery delay: to a topic, and within a transacted session. */
class DelayTest {
    private static final long DELAY_MS = 1_500;

    private static void delay(JMSContext context, Destination to, long delay, String text) {
        context.createProducer().setDeliveryDelay(delay).send(to, text);
    }

    /** That the next message is this one, and comes a delay after a moment at the earliest. */
    private static Message assertDelayed(String text, JMSConsumer consumer, long sent) throws JMSException {
        Message message = Client.next(consumer);
        long now = System.currentTimeMillis();
        assertEquals(text, message.getBody(String.class));
        assertTrue(now >= sent + DELAY_MS, "it came too early");
        assertTrue(message.getJMSDeliveryTime() >= sent + DELAY_MS, message::toString);
        assertTrue(message.getJMSDeliveryTime() <= now, message::toString);
        return message;
    }

    @Test
    void aMessageForATopicComesToEverySubscriptionAtItsTime() throws JMSException {
        try (JMSContext context = Client.context("delayed")) {
            Topic topic = context.createTopic("prices");
            JMSConsumer plain = context.createConsumer(topic);
            JMSConsumer durable = context.createDurableConsumer(topic, "delayed");
            JMSConsumer shared = context.createSharedConsumer(topic, "delayed", "JMSPriority = 7");
            JMSConsumer other = context.createConsumer(topic, "JMSPriority = 8");
            long sent = System.currentTimeMillis();
            context.createProducer().setPriority(7).setDeliveryDelay(DELAY_MS).send(topic, "later");
            context.createProducer().setPriority(7).send(topic, "at once");
            for (JMSConsumer consumer : List.of(plain, durable, shared)) {
                assertEquals("at once", Client.text(consumer));
            }
            for (JMSConsumer consumer : List.of(plain, durable, shared)) {
                assertDelayed("later", consumer, sent);
                assertNull(consumer.receiveNoWait());
            }
            assertNull(other.receiveNoWait());
            durable.close();
            context.unsubscribe("delayed");
        }
    }

    /** The subscriptions of the moment when it is delivered decide, and their selectors. */
    @Test
    void aMessageForATopicComesToASubscriptionThatWasMadeMeanwhile() throws JMSException {
        try (JMSContext context = Client.context("meanwhile")) {
            Topic topic = context.createTopic("prices");
            context.createDurableConsumer(topic, "changed", "kind = 'other'", false).close();
            delay(context, topic, 4_000, "later");
            JMSConsumer changed = context.createDurableConsumer(topic, "changed");
            JMSConsumer made = context.createConsumer(topic);
            for (JMSConsumer consumer : List.of(changed, made)) {
                assertEquals("later", Client.text(consumer));
                assertNull(consumer.receiveNoWait());
            }
            changed.close();
            context.unsubscribe("changed");
        }
    }

    @Test
    void aCommittedMessageComesAtItsTimeToAQueueAndATopic() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            Queue queue = plain.createQueue(own.name);
            Topic topic = plain.createTopic("prices");
            JMSConsumer ofQueue = plain.createConsumer(queue);
            JMSConsumer ofTopic = plain.createConsumer(topic);
            long sent = System.currentTimeMillis();
            for (Destination to : List.of(queue, topic)) {
                delay(transacted, to, DELAY_MS, "later");
                transacted.createProducer().send(to, "at the commit");
            }
            assertTrue(own.messages("scheduled").isEmpty());
            assertNull(ofQueue.receiveNoWait());
            transacted.commit();
            for (JMSConsumer consumer : List.of(ofQueue, ofTopic)) {
                assertEquals("at the commit", Client.text(consumer));
            }
            for (JMSConsumer consumer : List.of(ofQueue, ofTopic)) {
                assertDelayed("later", consumer, sent);
                assertNull(consumer.receiveNoWait());
            }
        }
    }

    /** A delay counts from the send, as JMS says. */
    @Test
    void aMessageWhoseTimePassesBeforeTheCommitComesAtTheCommit() throws JMSException {
        try (OwnQueue first = new OwnQueue();
                OwnQueue second = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            JMSConsumer clock = plain.createConsumer(plain.createQueue(first.name));
            delay(transacted, transacted.createQueue(second.name), DELAY_MS, "within");
            delay(plain, plain.createQueue(first.name), DELAY_MS, "its time has come");
            assertEquals("its time has come", Client.text(clock));
            JMSConsumer consumer = plain.createConsumer(plain.createQueue(second.name));
            assertNull(consumer.receiveNoWait());
            transacted.commit();
            assertEquals("within", consumer.receiveBodyNoWait(String.class));
            assertTrue(second.messages("scheduled").isEmpty());
        }
    }

    @Test
    void aMessageThatIsRolledBackNeverComes() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            Queue queue = plain.createQueue(own.name);
            Topic topic = plain.createTopic("prices");
            JMSConsumer ofQueue = plain.createConsumer(queue);
            JMSConsumer ofTopic = plain.createConsumer(topic);
            for (Destination to : List.of(queue, topic)) {
                delay(transacted, to, DELAY_MS, "undone");
            }
            transacted.rollback();
            assertTrue(own.messages("scheduled").isEmpty());
            long sent = System.currentTimeMillis();
            for (Destination to : List.of(queue, topic)) {
                delay(transacted, to, DELAY_MS, "sent again");
            }
            transacted.commit();
            // What was undone would have come before these.
            for (JMSConsumer consumer : List.of(ofQueue, ofTopic)) {
                assertDelayed("sent again", consumer, sent);
                assertNull(consumer.receiveNoWait());
            }
        }
    }

    @Test
    void aTransactionThatReceivedADelayedMessageGivesItBackAtOnce() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext transacted = Client.prefetching(null, 0).createContext(JMSContext.SESSION_TRANSACTED)) {
            Queue queue = transacted.createQueue(own.name);
            JMSConsumer consumer = transacted.createConsumer(queue);
            long sent = System.currentTimeMillis();
            delay(transacted, queue, DELAY_MS, "later");
            transacted.commit();
            assertDelayed("later", consumer, sent);
            transacted.rollback();
            Message again = consumer.receiveNoWait();
            assertEquals("later", again.getBody(String.class));
            assertEquals(2, again.getIntProperty("JMSXDeliveryCount"));
            transacted.commit();
            assertNull(consumer.receiveNoWait());
        }
    }

    @Test
    void aDelayThatAClosedConnectionDidNotCommitIsForgotten() throws JMSException {
        try (OwnQueue own = new OwnQueue(); JMSContext plain = Client.context(null)) {
            Queue queue = plain.createQueue(own.name);
            try (JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
                delay(transacted, queue, DELAY_MS, "undone");
            }
            long sent = System.currentTimeMillis();
            delay(plain, queue, DELAY_MS, "kept");
            assertEquals(1, own.messages("scheduled").size());
            JMSConsumer consumer = plain.createConsumer(queue);
            assertDelayed("kept", consumer, sent);
            assertNull(consumer.receiveNoWait());
        }
    }
}
