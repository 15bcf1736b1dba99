package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Topic;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import railbus.Broker.OwnQueue;

/** {@code receiveNoWait}, which asks the broker whether a message is there now. */
class ReceiveNoWaitTest {
    private static JMSContext context(boolean prefetches, int mode) {
        return Client.prefetching(null, prefetches ? 10 : 0).createContext(mode);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatIsThereComesInOrderAndThenNothing(boolean prefetches) {
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = context(prefetches, JMSContext.AUTO_ACKNOWLEDGE)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            assertNull(consumer.receiveNoWait());
            Client.send(context, queue.name, "one", "two", "three");
            assertEquals("one", consumer.receiveBodyNoWait(String.class));
            assertEquals("two", consumer.receiveBodyNoWait(String.class));
            assertEquals("three", consumer.receiveBodyNoWait(String.class));
            assertNull(consumer.receiveNoWait());
            Client.send(context, queue.name, "four");
            assertEquals("four", Client.text(consumer));
            assertNull(consumer.receiveNoWait());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void everySendIsSeenAtOnce(boolean prefetches) {
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                JMSContext context = context(prefetches, JMSContext.AUTO_ACKNOWLEDGE)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            for (int n = 0; n < 50; n++) {
                Client.send(sender, queue.name, "message " + n);
                assertEquals("message " + n, consumer.receiveBodyNoWait(String.class));
                assertNull(consumer.receiveNoWait());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatIsRolledBackIsThereAtOnce(boolean prefetches) throws JMSException {
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = context(prefetches, JMSContext.SESSION_TRANSACTED)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            Client.send(context, queue.name, "one", "two");
            assertNull(consumer.receiveNoWait());
            context.commit();
            assertEquals("one", consumer.receiveBodyNoWait(String.class));
            context.rollback();
            Message again = consumer.receiveNoWait();
            assertNotNull(again, "it is not there");
            assertEquals("one", again.getBody(String.class));
            assertTrue(again.getJMSRedelivered());
            assertEquals(2, again.getIntProperty("JMSXDeliveryCount"));
            assertEquals("two", consumer.receiveBodyNoWait(String.class));
            context.commit();
            assertNull(consumer.receiveNoWait());
        }
    }

    @Test
    void aConsumerWithoutPrefetchLeavesTheRestToOthers() {
        try (OwnQueue queue = new OwnQueue();
                JMSContext one = context(false, JMSContext.AUTO_ACKNOWLEDGE);
                JMSContext two = context(false, JMSContext.AUTO_ACKNOWLEDGE)) {
            Client.send(one, queue.name, "first", "second", "third");
            JMSConsumer ofOne = one.createConsumer(one.createQueue(queue.name));
            JMSConsumer ofTwo = two.createConsumer(two.createQueue(queue.name));
            assertEquals("first", ofOne.receiveBodyNoWait(String.class));
            assertEquals("second", ofTwo.receiveBodyNoWait(String.class));
            assertEquals("third", ofOne.receiveBodyNoWait(String.class));
            assertNull(ofTwo.receiveNoWait());
        }
    }

    @Test
    void whatAnotherConsumerHasIsNotThere() {
        String holding = "holder-" + UUID.randomUUID();
        try (OwnQueue queue = new OwnQueue();
                JMSContext holder = Client.prefetching(holding, 10).createContext();
                JMSContext context = Client.context(null)) {
            holder.createConsumer(holder.createQueue(queue.name));
            Client.send(context, queue.name, "held");
            Broker.awaitUnsettled(holding, queue, 1);
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            assertNull(consumer.receiveNoWait());
            holder.close();
            assertEquals("held", Client.text(consumer));
        }
    }

    @Test
    void aSubscriptionIsAskedToo() {
        String id = "asker-" + UUID.randomUUID();
        try (JMSContext context = Client.context(id)) {
            Topic topic = context.createTopic("weather");
            JMSConsumer consumer = context.createDurableConsumer(topic, "asked");
            assertNull(consumer.receiveNoWait());
            context.createProducer().send(topic, "rain");
            assertEquals("rain", consumer.receiveBodyNoWait(String.class));
            assertNull(consumer.receiveNoWait());
            consumer.close();
            context.unsubscribe("asked");
        }
    }
}
