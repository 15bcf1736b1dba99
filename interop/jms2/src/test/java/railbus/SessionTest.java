package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The ways to acknowledge, transactions, and destinations that end with their connection. */
class SessionTest {
    @BeforeEach
    void empty() {
        try (JMSContext context = Client.context(null)) {
            Client.empty(context, "orders");
        }
    }

    private static void send(JMSContext context, String... texts) {
        Queue queue = context.createQueue("orders");
        for (String text : texts) {
            context.createProducer().send(queue, text);
        }
    }

    @Test
    void recoverBringsBackWhatIsNotAcknowledged() throws JMSException {
        try (JMSContext context = Client.context(null, JMSContext.CLIENT_ACKNOWLEDGE)) {
            send(context, "one", "two");
            JMSConsumer consumer = context.createConsumer(context.createQueue("orders"));
            Client.next(consumer).acknowledge();
            Message two = Client.next(consumer);
            assertEquals(1, two.getIntProperty("JMSXDeliveryCount"));
            context.recover();
            Message again = Client.next(consumer);
            assertEquals("two", again.getBody(String.class));
            assertTrue(again.getJMSRedelivered());
            assertEquals(2, again.getIntProperty("JMSXDeliveryCount"));
            context.acknowledge();
            assertNull(consumer.receive(Client.LULL_MS));
        }
    }

    @Test
    void dupsOkAcknowledgesToo() {
        try (JMSContext context = Client.context(null, JMSContext.DUPS_OK_ACKNOWLEDGE)) {
            send(context, "one", "two");
            try (JMSConsumer consumer = context.createConsumer(context.createQueue("orders"))) {
                assertEquals("one", Client.text(consumer));
                assertEquals("two", Client.text(consumer));
            }
        }
        try (JMSContext context = Client.context(null);
                JMSConsumer consumer = context.createConsumer(context.createQueue("orders"))) {
            assertNull(consumer.receive(Client.LULL_MS));
        }
    }

    @Test
    void aTransactionSendsAndReceivesAllOrNothing() throws JMSException {
        try (JMSContext plain = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            Topic topic = transacted.createTopic("prices");
            JMSConsumer published = plain.createConsumer(topic);
            send(plain, "request");
            JMSConsumer consumer = transacted.createConsumer(transacted.createQueue("orders"));
            assertEquals("request", Client.text(consumer));
            transacted.createProducer().send(topic, "undone");
            transacted.rollback();
            Message again = Client.next(consumer);
            assertEquals("request", again.getBody(String.class));
            assertTrue(again.getJMSRedelivered());
            transacted.createProducer().send(topic, "done");
            transacted.commit();
            assertEquals("done", Client.text(published));
            assertNull(published.receive(Client.LULL_MS));
            assertNull(consumer.receive(Client.LULL_MS));
        }
    }

    @Test
    void aTransactionReceivesFromASubscription() {
        try (JMSContext publisher = Client.context(null);
                JMSContext transacted = Client.context("transacted", JMSContext.SESSION_TRANSACTED)) {
            Topic topic = publisher.createTopic("prices");
            JMSConsumer consumer = transacted.createDurableConsumer(topic, "transacted");
            publisher.createProducer().send(topic, "price");
            assertEquals("price", Client.text(consumer));
            transacted.rollback();
            assertEquals("price", Client.text(consumer));
            transacted.commit();
            assertNull(consumer.receive(Client.LULL_MS));
            consumer.close();
            transacted.unsubscribe("transacted");
        }
    }

    @Test
    void aRequestIsAnsweredByATemporaryQueue() throws JMSException {
        try (JMSContext client = Client.context(null); JMSContext service = Client.context(null)) {
            TemporaryQueue replies = client.createTemporaryQueue();
            client.createProducer().setJMSReplyTo(replies).send(client.createQueue("orders"), "question");
            try (JMSConsumer requests = service.createConsumer(service.createQueue("orders"))) {
                service.createProducer().send(Client.next(requests).getJMSReplyTo(), "answer");
            }
            try (JMSConsumer consumer = client.createConsumer(replies)) {
                assertEquals("answer", Client.text(consumer));
            }
            replies.delete();
        }
    }

    @Test
    void aTemporaryTopicReachesItsConsumers() throws JMSException {
        try (JMSContext context = Client.context(null)) {
            TemporaryTopic topic = context.createTemporaryTopic();
            JMSConsumer one = context.createConsumer(topic);
            JMSConsumer two = context.createConsumer(topic);
            context.createProducer().send(topic, "both");
            assertEquals("both", Client.text(one));
            assertEquals("both", Client.text(two));
            one.close();
            two.close();
            topic.delete();
        }
    }

    @Test
    void anEntityIsMadeByAttachingWhereTheClientSaysSo() {
        try (JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue("made-" + System.nanoTime());
            Topic topic = context.createTopic("made-topic-" + System.nanoTime());
            if (!Client.makesEntities()) {
                assertThrows(JMSRuntimeException.class, () -> context.createProducer().send(queue, "lost"));
                return;
            }
            context.createProducer().send(queue, "first");
            assertEquals("first", Client.text(context.createConsumer(queue)));
            JMSConsumer consumer = context.createConsumer(topic);
            context.createProducer().send(topic, "second");
            assertEquals("second", Client.text(consumer));
        }
    }
}
