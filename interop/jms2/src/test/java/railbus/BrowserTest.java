package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Client.assertSays;

import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import railbus.Broker.OwnQueue;

/** Browsers of everything that a client may browse: queues, temporary ones, dead letters and subscriptions. */
class BrowserTest {
    private static List<Message> browse(JMSContext context, Queue queue, String selector) throws JMSException {
        List<Message> shown = new ArrayList<>();
        try (QueueBrowser browser = context.createBrowser(queue, selector)) {
            Enumeration<?> messages = browser.getEnumeration();
            while (messages.hasMoreElements()) {
                shown.add((Message) messages.nextElement());
            }
        }
        return shown;
    }

    /** The texts of what is shown, and which delivery of each would be the next. */
    private static List<String> texts(JMSContext context, Queue queue, String selector) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message : browse(context, queue, selector)) {
            texts.add(message.getBody(String.class) + " " + message.getIntProperty("JMSXDeliveryCount"));
        }
        return texts;
    }

    private static List<String> texts(JMSContext context, Queue queue) throws JMSException {
        return texts(context, queue, null);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void aQueueIsShownInOrderAgainAndAgain(int prefetch) throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext context = Client.prefetching(null, prefetch).createContext()) {
            Queue queue = context.createQueue(own.name);
            assertEquals(List.of(), texts(context, queue));
            String[] sent = IntStream.range(0, 40).mapToObj(n -> "message " + n).toArray(String[]::new);
            Client.send(context, own.name, sent);
            List<String> shown = IntStream.range(0, 40).mapToObj(n -> "message " + n + " 1").toList();
            for (int round = 0; round < 3; round++) {
                assertEquals(shown, texts(context, queue));
            }
            JMSConsumer consumer = context.createConsumer(queue);
            for (String text : sent) {
                assertEquals(text, Client.text(consumer));
            }
            assertEquals(List.of(), texts(context, queue));
        }
    }

    @Test
    void whatAConsumerHoldsIsShownAndStaysWithIt() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext context = Client.context(null);
                JMSContext holder = Client.prefetching(null, 0).createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
            Queue queue = context.createQueue(own.name);
            Client.send(context, own.name, "held", "free");
            JMSConsumer consumer = holder.createConsumer(queue);
            Message held = Client.next(consumer);
            assertEquals(List.of("held 1", "free 1"), texts(context, queue));
            held.acknowledge();
            assertEquals(List.of("free 1"), texts(context, queue));
        }
    }

    @Test
    void aMessageThatWasRolledBackIsShownWithItsCount() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext context = Client.context(null);
                JMSContext transacted = Client.prefetching(null, 0).createContext(JMSContext.SESSION_TRANSACTED)) {
            Queue queue = context.createQueue(own.name);
            Client.send(context, own.name, "once", "never");
            JMSConsumer consumer = transacted.createConsumer(queue);
            assertEquals("once", Client.text(consumer));
            transacted.rollback();
            List<Message> shown = browse(context, queue, null);
            assertTrue(shown.get(0).getJMSRedelivered());
            assertFalse(shown.get(1).getJMSRedelivered());
            assertEquals(List.of("once 2", "never 1"), texts(context, queue));
        }
    }

    @Test
    void whatATransactionSendsIsShownOnceItIsCommitted() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext context = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            Queue queue = context.createQueue(own.name);
            Client.send(transacted, own.name, "undone");
            assertEquals(List.of(), texts(context, queue));
            transacted.rollback();
            Client.send(transacted, own.name, "done");
            assertEquals(List.of(), texts(transacted, queue));
            transacted.commit();
            assertEquals(List.of("done 1"), texts(context, queue));
            // A browser of the session takes no part in its transaction.
            assertEquals(List.of("done 1"), texts(transacted, queue));
            transacted.rollback();
            assertEquals(List.of("done 1"), texts(context, queue));
        }
    }

    @Test
    void whatIsDelayedOrExpiredIsNotShown() throws JMSException {
        try (OwnQueue own = new OwnQueue(); JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            context.createProducer().setTimeToLive(1).send(queue, "expired");
            context.createProducer().setDeliveryDelay(600_000).send(queue, "delayed");
            Client.send(context, own.name, "there");
            assertEquals(List.of("there 1"), texts(context, queue));
            assertEquals(1, own.messages("scheduled").size());
        }
    }

    @Test
    void aSelectorDecidesWhatIsShownBeyondWhatIsNotSelected() throws JMSException {
        try (OwnQueue own = new OwnQueue(); JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            for (int n = 0; n < 100; n++) {
                context.createProducer().setProperty("n", n).setPriority(n % 10).send(queue, "message " + n);
            }
            assertEquals(
                    List.of("message 7 1", "message 97 1"),
                    texts(context, queue, "JMSPriority = 7 AND (n < 10 OR n BETWEEN 90 AND 99)"));
            assertEquals(List.of(), texts(context, queue, "n > 99"));
            assertThrows(JMSRuntimeException.class, () -> context.createBrowser(queue, "n >"));
            assertEquals(100, texts(context, queue).size());
        }
    }

    @Test
    void deadLettersAreShownWithTheirReason() throws JMSException {
        try (OwnQueue own = new OwnQueue("\"max-delivery-count\": 1");
                JMSContext context = Client.context(null);
                JMSContext transacted = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            Queue dead = context.createQueue(own.name + "/$DeadLetterQueue");
            assertEquals(List.of(), texts(context, dead));
            Client.send(context, own.name, "poison");
            JMSConsumer consumer = transacted.createConsumer(context.createQueue(own.name));
            assertEquals("poison", Client.text(consumer));
            transacted.rollback();
            String selector = "DeadLetterReason = 'MaxDeliveryCountExceeded'";
            List<Message> shown = browse(context, dead, selector);
            assertEquals(1, shown.size());
            assertEquals("poison", shown.get(0).getBody(String.class));
            assertEquals(List.of(), browse(context, dead, "NOT " + selector));
            assertEquals("poison", Client.text(context.createConsumer(dead)));
            assertEquals(List.of(), texts(context, dead));
        }
    }

    @Test
    void aSubscriptionIsBrowsedAsAQueueByItsPath() throws JMSException {
        try (JMSContext context = Client.prefetching("browsed", 0).createContext();
                JMSContext other = Client.context(null)) {
            Topic topic = context.createTopic("prices");
            JMSConsumer durable = context.createDurableConsumer(topic, "shown");
            Queue path = other.createQueue("prices/Subscriptions/shown$browsed$D");
            assertEquals(List.of(), texts(other, path));
            for (int n = 0; n < 3; n++) {
                context.createProducer().setProperty("n", n).send(topic, "price " + n);
            }
            assertEquals(List.of("price 0 1", "price 1 1", "price 2 1"), texts(other, path));
            assertEquals(List.of("price 1 1"), texts(other, path, "n = 1"));
            // Its consumer has them all.
            for (int n = 0; n < 3; n++) {
                assertEquals("price " + n, Client.text(durable));
            }
            assertEquals(List.of(), texts(other, path));
            durable.close();
            context.unsubscribe("shown");
        }
    }

    @Test
    void aSharedSubscriptionIsBrowsedWhileItsConsumersHoldIt() throws JMSException {
        try (JMSContext context = Client.prefetching("browsed", 0).createContext(JMSContext.CLIENT_ACKNOWLEDGE);
                JMSContext other = Client.context(null)) {
            Topic topic = context.createTopic("prices");
            JMSConsumer consumer = context.createSharedConsumer(topic, "fleeting", "n > 0");
            Queue path = other.createQueue("prices/Subscriptions/fleeting$browsed$ND");
            for (int n = 0; n < 3; n++) {
                context.createProducer().setProperty("n", n).send(topic, "price " + n);
            }
            assertEquals("price 1", Client.text(consumer));
            assertEquals(List.of("price 1 1", "price 2 1"), texts(other, path));
            context.acknowledge();
            assertEquals(List.of("price 2 1"), texts(other, path));
        }
    }

    @Test
    void aTemporaryQueueIsBrowsedByItsConnection() throws JMSException {
        try (JMSContext context = Client.context(null)) {
            TemporaryQueue queue = context.createTemporaryQueue();
            assertEquals(List.of(), texts(context, queue));
            context.createProducer().send(queue, "reply");
            assertEquals(List.of("reply 1"), texts(context, queue));
            try (JMSConsumer consumer = context.createConsumer(queue)) {
                assertEquals("reply", Client.text(consumer));
            }
            assertEquals(List.of(), texts(context, queue));
            queue.delete();
        }
    }

    @Test
    void anEnumerationGoesOnWithWhatIsLeft() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                JMSContext context = Client.prefetching(null, 0).createContext()) {
            Queue queue = context.createQueue(own.name);
            Client.send(context, own.name, "one", "two", "three");
            try (QueueBrowser browser = context.createBrowser(queue)) {
                Enumeration<?> shown = browser.getEnumeration();
                assertTrue(shown.hasMoreElements());
                assertEquals("one", ((Message) shown.nextElement()).getBody(String.class));
                try (JMSConsumer consumer = context.createConsumer(queue)) {
                    assertEquals("one", Client.text(consumer));
                    assertEquals("two", Client.text(consumer));
                }
                assertEquals("three", ((Message) shown.nextElement()).getBody(String.class));
                assertFalse(shown.hasMoreElements());
            }
        }
    }

    @Test
    void aTopicCannotBeBrowsed() {
        try (JMSContext context = Client.context(null)) {
            Queue topic = context.createQueue("prices");
            assertSays("amqp:not-allowed", assertThrows(JMSException.class, () -> browse(context, topic, null)));
        }
    }

    @Test
    void aQueueThatDoesNotExistIsMadeToBeBrowsedWhereTheClientMakesQueues() throws JMSException {
        try (JMSContext context = Client.context(null)) {
            Queue missing = context.createQueue("missing-" + UUID.randomUUID());
            if (Client.makesEntities()) {
                assertEquals(List.of(), texts(context, missing));
                Client.send(context, missing.getQueueName(), "first");
                assertEquals(List.of("first 1"), texts(context, missing));
            } else {
                assertThrows(InvalidDestinationException.class, () -> browse(context, missing, null));
            }
        }
    }
}
