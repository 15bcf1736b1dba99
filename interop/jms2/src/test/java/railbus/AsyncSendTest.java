package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Client.assertSays;
import static railbus.Client.says;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import railbus.Broker.OwnQueue;

/** What a {@link CompletionListener} is told, above all when the broker does not take a message. */
class AsyncSendTest {
    /** An end of a send: without an exception the broker has the message. */
    private record End(String text, Exception exception) {}

    /** The producer has the queue as its own, or is told it with each message. */
    enum Producer {
        OF_THE_QUEUE,
        OF_ANY
    }

    private final BlockingQueue<End> ends = new LinkedBlockingQueue<>();

    private final CompletionListener listener = new CompletionListener() {
        @Override
        public void onCompletion(Message message) {
            ends.add(new End(name(message), null));
        }

        @Override
        public void onException(Message message, Exception exception) {
            ends.add(new End(name(message), exception));
        }
    };

    private static String name(Message message) {
        try {
            return message.getStringProperty("name");
        } catch (JMSException failed) {
            throw new AssertionError(failed);
        }
    }

    private End end() throws InterruptedException {
        End end = ends.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
        assertNotNull(end, "no send ended");
        return end;
    }

    private void assertCompleted(String name) throws InterruptedException {
        End end = end();
        assertEquals(name, end.text, () -> end + " came instead");
        assertNull(end.exception, end::toString);
    }

    private Exception refused(String name) throws InterruptedException {
        End end = end();
        assertEquals(name, end.text, () -> end + " came instead");
        assertNotNull(end.exception, name + " was not refused");
        return end.exception;
    }

    /** A session whose producer sends to a queue. */
    private final class Sender implements AutoCloseable {
        private final Connection connection;
        private final Session session;
        private final Queue queue;
        private final MessageProducer producer;
        private final boolean named;

        Sender(OwnQueue own, Producer kind, int mode) throws JMSException {
            connection = Client.factory(null).createConnection();
            session = connection.createSession(mode);
            queue = session.createQueue(own.name);
            named = kind == Producer.OF_THE_QUEUE;
            producer = session.createProducer(named ? queue : null);
        }

        Sender(OwnQueue own, Producer kind) throws JMSException {
            this(own, kind, Session.AUTO_ACKNOWLEDGE);
        }

        void send(String name, int bytes) throws JMSException {
            send(name, bytes, Map.of());
        }

        void send(String name, int bytes, Map<String, String> properties) throws JMSException {
            Message message = session.createTextMessage("x".repeat(bytes));
            message.setStringProperty("name", name);
            for (Map.Entry<String, String> property : properties.entrySet()) {
                message.setStringProperty(property.getKey(), property.getValue());
            }
            if (named) {
                producer.send(message, listener);
            } else {
                producer.send(queue, message, listener);
            }
        }

        @Override
        public void close() throws JMSException {
            connection.close();
        }
    }

    private static List<Object> names(OwnQueue queue) {
        return queue.messages().stream()
                .map(message -> ((Map<?, ?>) message.get("properties")).get("name"))
                .map(Object.class::cast)
                .toList();
    }

    @ParameterizedTest
    @EnumSource(Producer.class)
    void aMessageThatIsTooLargeIsRefusedAndTheOthersAreCompletedInOrder(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue("\"max-message-size\": \"64KiB\"");
                Sender sender = new Sender(queue, kind)) {
            for (int n = 0; n < 3; n++) {
                sender.send("small " + n, 10);
                sender.send("large " + n, 64 << 10);
            }
            for (int n = 0; n < 3; n++) {
                assertCompleted("small " + n);
                assertSays("amqp:link:message-size-exceeded", refused("large " + n));
            }
            assertEquals(List.of("small 0", "small 1", "small 2"), names(queue));
        }
    }

    @ParameterizedTest
    @EnumSource(Producer.class)
    void aMessageAboveTheLimitOfTheBrokerIsRefused(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue();
                Sender sender = new Sender(queue, kind)) {
            sender.send("largest", 1_047_000);
            sender.send("too large", 1 << 20);
            sender.send("much too large", 5 << 20);
            sender.send("small", 10);
            assertCompleted("largest");
            assertSays("amqp:link:message-size-exceeded", refused("too large"));
            assertSays("amqp:link:message-size-exceeded", refused("much too large"));
            assertCompleted("small");
            assertEquals(List.of("largest", "small"), names(queue));
        }
    }

    @ParameterizedTest
    @EnumSource(Producer.class)
    void sendsToAFullQueueAreRefusedUntilThereIsRoom(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue("\"max-size-in-megabytes\": 1");
                Sender sender = new Sender(queue, kind)) {
            int count = 12;
            for (int n = 0; n < count; n++) {
                sender.send("message " + n, 200_000);
            }
            List<Object> taken = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                End end = end();
                assertEquals("message " + n, end.text);
                if (end.exception == null) {
                    assertEquals(n, taken.size(), "a send was completed after one that was refused");
                    taken.add(end.text);
                } else {
                    assertInstanceOf(ResourceAllocationException.class, end.exception);
                    assertSays("amqp:resource-limit-exceeded", end.exception);
                }
            }
            // A mebibyte holds five of them. One may begin in it and end outside.
            assertTrue(taken.size() == 5 || taken.size() == 6, taken::toString);
            assertEquals(taken, names(queue));
            try (JMSContext context = Client.context(null)) {
                Client.empty(context, queue.name);
            }
            sender.send("in the room", 200_000);
            assertCompleted("in the room");
        }
    }

    @ParameterizedTest
    @EnumSource(Producer.class)
    void aMessageWithoutAGroupIsRefusedByAQueueThatRequiresSessions(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue("\"requires-session\": true");
                Sender sender = new Sender(queue, kind)) {
            sender.send("in a group", 10, Map.of("JMSXGroupID", "red"));
            sender.send("alone", 10);
            sender.send("in another", 10, Map.of("JMSXGroupID", "blue"));
            assertCompleted("in a group");
            assertSays("SessionId was not set", refused("alone"));
            assertCompleted("in another");
            assertEquals(List.of("in a group", "in another"), names(queue));
        }
    }

    /** The broker closes the link of the queue's own producer, which may hear of it before it sends or after. */
    @ParameterizedTest
    @EnumSource(Producer.class)
    void sendsToAQueueThatIsDisabledMeanwhileFailUntilItIsActive(Producer kind) throws Exception {
        String condition =
                kind == Producer.OF_THE_QUEUE ? "amqp:link:detach-forced" : "com.microsoft:entity-disabled";
        try (OwnQueue queue = new OwnQueue();
                Sender sender = new Sender(queue, kind)) {
            sender.send("before", 10);
            assertCompleted("before");
            queue.change("\"status\": \"send-disabled\"");
            for (int n = 0; n < 3; n++) {
                Throwable failure = failure(sender, "meanwhile " + n);
                // Qpid JMS closes the producer a moment before it knows why.
                boolean isClosed = says("The MessageProducer is closed", failure);
                if (kind == Producer.OF_ANY || !isClosed) {
                    assertSays(condition, failure);
                }
            }
            queue.change("\"status\": \"active\"");
            try (Sender anew = new Sender(queue, kind)) {
                anew.send("from a new producer", 10);
                assertCompleted("from a new producer");
            }
            if (kind == Producer.OF_ANY) {
                sender.send("after", 10);
                assertCompleted("after");
                assertEquals(List.of("before", "from a new producer", "after"), names(queue));
            } else {
                assertEquals(List.of("before", "from a new producer"), names(queue));
            }
        }
    }

    /** What a send fails with that is refused: JMS lets it throw at once. */
    private Exception failure(Sender sender, String name) throws InterruptedException {
        try {
            sender.send(name, 10);
        } catch (JMSException thrown) {
            assertEquals(List.of(), List.copyOf(ends));
            return thrown;
        }
        return refused(name);
    }

    /** The clients call it in doubt, although the broker's answer says that it was rolled back. */
    @ParameterizedTest
    @EnumSource(Producer.class)
    void aTransactionWithARefusedSendIsRolledBackByItsCommit(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue("\"max-message-size\": \"64KiB\"");
                Sender sender = new Sender(queue, kind, Session.SESSION_TRANSACTED)) {
            sender.send("small", 10);
            sender.send("large", 64 << 10);
            assertCompleted("small");
            assertSays("amqp:link:message-size-exceeded", refused("large"));
            assertSays("amqp:transaction:rollback", assertThrows(JMSException.class, sender.session::commit));
            assertEquals(List.of(), names(queue));
            sender.send("in the next", 10);
            assertCompleted("in the next");
            assertEquals(List.of(), names(queue));
            sender.session.commit();
            assertEquals(List.of("in the next"), names(queue));
        }
    }

    @ParameterizedTest
    @EnumSource(Producer.class)
    void aCloseWaitsUntilEverySendHasEnded(Producer kind) throws Exception {
        try (OwnQueue queue = new OwnQueue("\"max-message-size\": \"64KiB\"")) {
            int count = 100;
            try (Sender sender = new Sender(queue, kind)) {
                for (int n = 0; n < count; n++) {
                    sender.send("message " + n, n % 10 == 9 ? 64 << 10 : 10);
                }
            }
            List<Object> completed = new ArrayList<>();
            assertEquals(count, ends.size());
            for (int n = 0; n < count; n++) {
                if (n % 10 == 9) {
                    refused("message " + n);
                } else {
                    assertCompleted("message " + n);
                    completed.add("message " + n);
                }
            }
            assertEquals(completed, names(queue));
        }
    }
}
