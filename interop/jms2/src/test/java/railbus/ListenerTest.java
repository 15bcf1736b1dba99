package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.Queue;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import railbus.Broker.OwnQueue;

/** Message listeners in transacted sessions, and those that throw. */
class ListenerTest {
    /** What a listener was given: the text, and which delivery of it this was. */
    private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();

    private interface Body {
        void handle(Message message, String text, boolean again) throws JMSException;
    }

    private MessageListener listener(Body body) {
        return message -> {
            try {
                String text = message.getBody(String.class);
                heard.add(text + " " + message.getIntProperty("JMSXDeliveryCount"));
                body.handle(message, text, message.getJMSRedelivered());
            } catch (JMSException failed) {
                throw new JMSRuntimeException(failed.getMessage());
            }
        };
    }

    private List<String> heard(int count) throws InterruptedException {
        List<String> all = new ArrayList<>();
        while (all.size() < count) {
            String next = heard.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
            if (next == null) {
                throw new AssertionError("only " + all + " came");
            }
            all.add(next);
        }
        return all;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void aListenerThatCommitsReceivesAndSendsTogether(int prefetch) throws InterruptedException {
        try (OwnQueue orders = new OwnQueue();
                OwnQueue bills = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext context =
                        Client.prefetching(null, prefetch).createContext(JMSContext.SESSION_TRANSACTED)) {
            Queue to = context.createQueue(bills.name);
            JMSConsumer consumer = context.createConsumer(context.createQueue(orders.name));
            consumer.setMessageListener(listener((message, text, again) -> {
                context.createProducer().send(to, "bill of " + text);
                context.commit();
            }));
            Client.send(plain, orders.name, "one", "two", "three");
            assertEquals(List.of("one 1", "two 1", "three 1"), heard(3));
            JMSConsumer billed = plain.createConsumer(plain.createQueue(bills.name));
            for (String text : List.of("one", "two", "three")) {
                assertEquals("bill of " + text, Client.text(billed));
            }
            context.close();
            assertNull(plain.createConsumer(plain.createQueue(orders.name)).receiveNoWait());
            assertNull(billed.receiveNoWait());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10})
    void aListenerThatRollsBackIsGivenTheMessageAgainInItsPlace(int prefetch) throws InterruptedException {
        try (OwnQueue orders = new OwnQueue();
                OwnQueue bills = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext context =
                        Client.prefetching(null, prefetch).createContext(JMSContext.SESSION_TRANSACTED)) {
            Client.send(plain, orders.name, "one", "two", "three");
            Queue to = context.createQueue(bills.name);
            JMSConsumer consumer = context.createConsumer(context.createQueue(orders.name));
            consumer.setMessageListener(listener((message, text, again) -> {
                context.createProducer().send(to, "bill of " + text);
                if (text.equals("two") && !again) {
                    context.rollback();
                } else {
                    context.commit();
                }
            }));
            assertEquals(List.of("one 1", "two 1", "two 2", "three 1"), heard(4));
            JMSConsumer billed = plain.createConsumer(plain.createQueue(bills.name));
            for (String text : List.of("one", "two", "three")) {
                assertEquals("bill of " + text, Client.text(billed));
            }
            assertNull(billed.receiveNoWait());
        }
    }

    @Test
    void aListenerThatAlwaysRollsBackLosesTheMessageToTheDeadLetterQueue() throws Exception {
        try (OwnQueue queue = new OwnQueue("\"max-delivery-count\": 3");
                JMSContext plain = Client.context(null);
                JMSContext context = Client.context(null, JMSContext.SESSION_TRANSACTED)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            consumer.setMessageListener(listener((message, text, again) -> context.rollback()));
            Client.send(plain, queue.name, "poison");
            assertEquals(List.of("poison 1", "poison 2", "poison 3"), heard(3));
            Queue dead = plain.createQueue(queue.name + "/$DeadLetterQueue");
            Message letter = Client.next(plain.createConsumer(dead));
            assertEquals("poison", letter.getBody(String.class));
            assertEquals("MaxDeliveryCountExceeded", letter.getStringProperty("DeadLetterReason"));
        }
    }

    @Test
    void manyMessagesAreRolledBackTogetherAndThenCommitted() throws Exception {
        try (OwnQueue queue = new OwnQueue();
                JMSContext plain = Client.context(null);
                JMSContext context = Client.prefetching(null, 10).createContext(JMSContext.SESSION_TRANSACTED)) {
            String[] texts = new String[20];
            List<String> expected = new ArrayList<>();
            for (int round = 1; round <= 2; round++) {
                for (int n = 0; n < texts.length; n++) {
                    texts[n] = "message " + n;
                    expected.add(texts[n] + " " + round);
                }
            }
            Client.send(plain, queue.name, texts);
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            CompletableFuture<Void> committed = new CompletableFuture<>();
            consumer.setMessageListener(listener((message, text, again) -> {
                if (!text.equals("message 19")) {
                    return;
                }
                if (again) {
                    context.commit();
                    committed.complete(null);
                } else {
                    context.rollback();
                }
            }));
            assertEquals(expected, heard(expected.size()));
            committed.get(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
            context.close();
            assertNull(plain.createConsumer(plain.createQueue(queue.name)).receiveNoWait());
        }
    }

    /** The clients release the message, so the broker does not count the delivery: JMS would have it counted. */
    @Test
    void aListenerThatThrowsIsGivenTheMessageAgain() throws InterruptedException {
        try (OwnQueue queue = new OwnQueue("\"max-delivery-count\": 3");
                JMSContext sender = Client.context(null);
                JMSContext context = Client.context(null)) {
            AtomicInteger failures = new AtomicInteger(5);
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            consumer.setMessageListener(listener((message, text, again) -> {
                if (failures.getAndDecrement() > 0) {
                    throw new IllegalStateException("not handled");
                }
            }));
            Client.send(sender, queue.name, "one");
            assertEquals(Collections.nCopies(6, "one 1"), heard(6));
            Client.send(sender, queue.name, "two");
            assertEquals(List.of("two 1"), heard(1));
        }
    }
}
