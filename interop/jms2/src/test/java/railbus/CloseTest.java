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
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import railbus.Broker.OwnQueue;

/** Consumers, sessions and connections that end before their messages are acknowledged. */
class CloseTest {
    /** The next messages of a queue: their texts, and which delivery of each this is. Nothing else is there. */
    private static List<String> take(OwnQueue queue, int count) throws JMSException {
        try (JMSContext after = Client.context(null)) {
            JMSConsumer consumer = after.createConsumer(after.createQueue(queue.name));
            List<String> taken = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                Message message = Client.next(consumer);
                taken.add(message.getBody(String.class) + " " + message.getIntProperty("JMSXDeliveryCount"));
            }
            assertNull(consumer.receiveNoWait());
            return taken;
        }
    }

    @Test
    void whatWasReceivedAndNotAcknowledgedComesAgainAtOnce() throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            try (JMSContext context = Client.prefetching(null, 0).createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
                Client.send(context, queue.name, "one", "two", "three", "four");
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
                assertEquals("one", Client.text(consumer));
                context.acknowledge();
                assertEquals("two", Client.text(consumer));
                assertEquals("three", Client.text(consumer));
            }
            assertEquals(List.of("two 2", "three 2", "four 1"), take(queue, 3));
        }
    }

    /**
     * What it had not handed out stays locked for its time, and then counts as delivered. What it gives back comes to
     * it again if it still has credit, so these messages may have a delivery more and come in another order.
     */
    @Test
    void whatAPrefetchingConsumerDidNotAcknowledgeComesAgain() throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            String id = clientId();
            try (JMSContext context = Client.prefetching(id, 10).createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
                Client.send(context, queue.name, "one", "two", "three");
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
                assertEquals("one", Client.text(consumer));
                context.acknowledge();
                assertEquals("two", Client.text(consumer));
                Broker.awaitUnsettled(id, queue, 2);
            }
            List<String> again = take(queue, 2).stream().sorted().toList();
            assertEquals("three 2", again.get(0));
            assertTrue(again.get(1).matches("two [23]"), again::toString);
        }
    }

    @Test
    void whatWasPrefetchedAndNotReceivedComesToOthers() throws JMSException {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue()) {
            try (JMSContext context = Client.prefetching(id, 10).createContext()) {
                Client.send(context, queue.name, "one", "two", "three");
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
                assertEquals("one", Client.text(consumer));
                Broker.awaitUnsettled(id, queue, 2);
            }
            assertEquals(List.of("two 2", "three 2"), take(queue, 2));
        }
    }

    @Test
    void theMessagesOfAClosedConsumerAreStillAcknowledged() throws JMSException {
        try (OwnQueue queue = new OwnQueue()) {
            try (JMSContext context = Client.prefetching(null, 0).createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
                Client.send(context, queue.name, "one", "two");
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
                Message one = Client.next(consumer);
                consumer.close();
                one.acknowledge();
            }
            assertEquals(List.of("two 1"), take(queue, 1));
        }
    }

    @Test
    void whatATransactionDidIsUndoneWhenItsConnectionIsClosed() throws JMSException {
        try (OwnQueue orders = new OwnQueue(); OwnQueue bills = new OwnQueue()) {
            try (JMSContext plain = Client.context(null)) {
                Client.send(plain, orders.name, "one", "two");
            }
            try (JMSContext context = Client.prefetching(null, 0).createContext(JMSContext.SESSION_TRANSACTED)) {
                JMSConsumer consumer = context.createConsumer(context.createQueue(orders.name));
                assertEquals("one", Client.text(consumer));
                Client.send(context, bills.name, "bill of one");
            }
            assertEquals(List.of("one 2", "two 1"), take(orders, 2));
            assertTrue(bills.messages().isEmpty());
        }
    }

    @Test
    void whatATransactionDidIsUndoneWhenTheBrokerClosesItsConnection() throws JMSException {
        String id = clientId();
        try (OwnQueue orders = new OwnQueue(); OwnQueue bills = new OwnQueue()) {
            try (JMSContext plain = Client.context(null)) {
                Client.send(plain, orders.name, "one", "two");
            }
            JMSContext context = Client.reconnecting(id, false).createContext(JMSContext.SESSION_TRANSACTED);
            JMSConsumer consumer = context.createConsumer(context.createQueue(orders.name));
            assertEquals("one", Client.text(consumer));
            Client.send(context, bills.name, "bill of one");
            Broker.closeConnection(id);
            assertThrows(JMSRuntimeException.class, context::commit);
            Client.closeFailed(context);
            List<String> again = take(orders, 2).stream().sorted().toList();
            assertEquals("one 2", again.get(0));
            assertTrue(again.get(1).startsWith("two"), again::toString);
            assertTrue(bills.messages().isEmpty());
        }
    }

    @Test
    void whatAConnectionHeldThatTheBrokerClosedComesAgain() throws JMSException {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue()) {
            JMSContext context = Client.prefetching(id, 10).createContext(JMSContext.CLIENT_ACKNOWLEDGE);
            Client.send(context, queue.name, "one", "two", "three");
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            assertEquals("one", Client.text(consumer));
            Broker.awaitUnsettled(id, queue, 3);
            Broker.closeConnection(id);
            Client.closeFailed(context);
            assertEquals(List.of("one 2", "two 2", "three 2"), take(queue, 3));
        }
    }

    private static String clientId() {
        return "closing-" + UUID.randomUUID();
    }
}
