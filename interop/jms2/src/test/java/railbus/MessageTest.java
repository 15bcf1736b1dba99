package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Messages of every kind, what a producer says of them, and browsers. */
class MessageTest {
    private interface Body {
        void check(JMSContext context, Queue queue, JMSConsumer consumer) throws JMSException;
    }

    private static void with(Body body) throws JMSException {
        try (JMSContext context = Client.context(null)) {
            Client.empty(context, "orders");
            Queue queue = context.createQueue("orders");
            try (JMSConsumer consumer = context.createConsumer(queue)) {
                body.check(context, queue, consumer);
            }
        }
    }

    @Test
    void everyKindOfMessageArrivesAsSuch() throws JMSException {
        with((context, queue, consumer) -> {
            JMSProducer producer = context.createProducer();
            byte[] bytes = "bytes".getBytes(StandardCharsets.UTF_8);
            Map<String, Object> map = Map.of("int", 7, "text", "seven");
            producer.send(queue, context.createMessage());
            producer.send(queue, "text");
            producer.send(queue, bytes);
            producer.send(queue, map);
            producer.send(queue, new java.util.ArrayList<>(List.of(1, 2)));
            StreamMessage stream = context.createStreamMessage();
            stream.writeInt(1);
            stream.writeString("two");
            producer.send(queue, stream);

            assertTrue(Client.next(consumer).isBodyAssignableTo(Object.class));
            assertEquals("text", ((TextMessage) Client.next(consumer)).getText());
            assertArrayEquals(bytes, ((BytesMessage) Client.next(consumer)).getBody(byte[].class));
            MapMessage ofMap = (MapMessage) Client.next(consumer);
            assertEquals(7, ofMap.getInt("int"));
            assertEquals("seven", ofMap.getString("text"));
            assertEquals(List.of(1, 2), ((ObjectMessage) Client.next(consumer)).getObject());
            StreamMessage ofStream = (StreamMessage) Client.next(consumer);
            assertEquals(1, ofStream.readInt());
            assertEquals("two", ofStream.readString());
        });
    }

    @Test
    void propertiesOfEveryTypeAndHeadersArrive() throws JMSException {
        with((context, queue, consumer) -> {
            Queue replies = context.createQueue("replies");
            context.createProducer()
                    .setProperty("boolean", true)
                    .setProperty("byte", (byte) 1)
                    .setProperty("short", (short) 2)
                    .setProperty("int", 3)
                    .setProperty("long", 4L)
                    .setProperty("float", 5.5f)
                    .setProperty("double", 6.5)
                    .setProperty("text", "seven")
                    .setJMSCorrelationID("correlation")
                    .setJMSType("type")
                    .setJMSReplyTo(replies)
                    .setPriority(7)
                    .setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                    .send(queue, "body");
            Message message = Client.next(consumer);
            assertTrue(message.getBooleanProperty("boolean"));
            assertEquals(1, message.getByteProperty("byte"));
            assertEquals(2, message.getShortProperty("short"));
            assertEquals(3, message.getIntProperty("int"));
            assertEquals(4, message.getLongProperty("long"));
            assertEquals(5.5f, message.getFloatProperty("float"));
            assertEquals(6.5, message.getDoubleProperty("double"));
            assertEquals("seven", message.getStringProperty("text"));
            assertEquals("correlation", message.getJMSCorrelationID());
            assertEquals("type", message.getJMSType());
            assertEquals(replies.getQueueName(), ((Queue) message.getJMSReplyTo()).getQueueName());
            assertEquals("orders", ((Queue) message.getJMSDestination()).getQueueName());
            assertEquals(7, message.getJMSPriority());
            assertEquals(DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
            assertEquals(1, message.getIntProperty("JMSXDeliveryCount"));
            assertTrue(message.getJMSMessageID().startsWith("ID:"), message::toString);
        });
    }

    @Test
    void aMessageGoesWhenItsTimeToLiveIsOver() throws Exception {
        with((context, queue, consumer) -> {
            consumer.close();
            context.createProducer().setTimeToLive(1).send(queue, "short-lived");
            context.createProducer().setTimeToLive(600_000).send(queue, "long-lived");
            try (JMSConsumer late = context.createConsumer(queue)) {
                Message message = Client.next(late);
                String text = message.getBody(String.class);
                if (!text.equals("long-lived")) {
                    throw new AssertionError("an expired message came: " + text);
                }
                assertEquals(message.getJMSTimestamp() + 600_000, message.getJMSExpiration());
            }
        });
    }

    @Test
    void aDelayedMessageComesAtItsTime() throws JMSException {
        with((context, queue, consumer) -> {
            long delay = 2_000;
            long before = System.currentTimeMillis();
            context.createProducer().setDeliveryDelay(delay).send(queue, "later");
            context.createProducer().send(queue, "at once");
            assertEquals("at once", Client.text(consumer));
            Message message = Client.next(consumer);
            assertEquals("later", message.getBody(String.class));
            assertTrue(System.currentTimeMillis() >= before + delay, "it came too early");
            assertTrue(message.getJMSDeliveryTime() >= before + delay, message::toString);
        });
    }

    @Test
    void anAsynchronousSendIsCompleted() throws Exception {
        with((context, queue, consumer) -> {
            CompletableFuture<Message> completed = new CompletableFuture<>();
            context.createProducer()
                    .setAsync(new CompletionListener() {
                        @Override
                        public void onCompletion(Message message) {
                            completed.complete(message);
                        }

                        @Override
                        public void onException(Message message, Exception exception) {
                            completed.completeExceptionally(exception);
                        }
                    })
                    .send(queue, "asynchronous");
            try {
                completed.get(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
            } catch (Exception exception) {
                throw new AssertionError(exception);
            }
            assertEquals("asynchronous", Client.text(consumer));
        });
    }

    @Test
    void aListenerIsGivenMessages() throws JMSException {
        with((context, queue, consumer) -> {
            CompletableFuture<String> heard = new CompletableFuture<>();
            consumer.setMessageListener(message -> {
                try {
                    heard.complete(message.getBody(String.class));
                } catch (JMSException exception) {
                    heard.completeExceptionally(exception);
                }
            });
            try (JMSContext sender = Client.context(null)) {
                sender.createProducer().send(sender.createQueue("orders"), "heard");
            }
            try {
                assertEquals("heard", heard.get(Client.PATIENCE_MS, TimeUnit.MILLISECONDS));
            } catch (Exception exception) {
                throw new AssertionError(exception);
            }
        });
    }

    @Test
    void aBrowserShowsMessagesAndTakesNone() throws JMSException {
        with((context, queue, consumer) -> {
            consumer.close();
            context.createProducer().setProperty("n", 1).send(queue, "one");
            context.createProducer().setProperty("n", 2).send(queue, "two");
            try (QueueBrowser browser = context.createBrowser(queue)) {
                assertEquals(2, Collections.list(browser.getEnumeration()).size());
            }
            try (QueueBrowser browser = context.createBrowser(queue, "n > 1")) {
                assertEquals(1, Collections.list(browser.getEnumeration()).size());
            }
            try (JMSConsumer after = context.createConsumer(queue)) {
                assertEquals("one", Client.text(after));
                assertEquals("two", Client.text(after));
                assertNull(after.receive(Client.LULL_MS));
            }
        });
    }

    @Test
    void aQueueIsSelectedFrom() throws JMSException {
        with((context, queue, consumer) -> {
            consumer.close();
            context.createProducer().setJMSType("red").send(queue, "red");
            context.createProducer().setJMSType("blue").send(queue, "blue");
            try (JMSConsumer blue = context.createConsumer(queue, "JMSType = 'blue'")) {
                assertEquals("blue", Client.text(blue));
            }
            try (JMSConsumer rest = context.createConsumer(queue)) {
                assertEquals("red", Client.text(rest));
            }
        });
    }
}
