package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import railbus.Broker.OwnQueue;

/** Connections that are stopped and started, while messages come. */
class ConnectionTest {
    private static String clientId() {
        return "connection-" + UUID.randomUUID();
    }

    @Test
    void aStoppedConnectionHandsOutNothingUntilItIsStarted() {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                JMSContext context = Client.prefetching(id, 10).createContext()) {
            Client.send(sender, queue.name, "one", "two", "three", "four");
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            assertEquals("one", Client.text(consumer));
            Broker.awaitUnsettled(id, queue, 3);
            context.stop();
            assertNull(consumer.receiveNoWait());
            Client.send(sender, queue.name, "five");
            assertNull(consumer.receive(Client.LULL_MS));
            context.start();
            for (String text : new String[] {"two", "three", "four", "five"}) {
                assertEquals(text, Client.text(consumer));
            }
            assertNull(consumer.receiveNoWait());
        }
    }

    @Test
    void aStoppedConnectionStillSends() {
        try (OwnQueue queue = new OwnQueue();
                JMSContext stopped = Client.context(null);
                JMSContext receiver = Client.context(null)) {
            stopped.stop();
            Client.send(stopped, queue.name, "sent");
            assertEquals("sent", Client.text(receiver.createConsumer(receiver.createQueue(queue.name))));
        }
    }

    @Test
    void aListenerHearsNothingWhileItsConnectionIsStopped() throws InterruptedException {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                JMSContext context = Client.prefetching(id, 10).createContext()) {
            BlockingQueue<String> heard = new LinkedBlockingQueue<>();
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            consumer.setMessageListener(message -> heard.add(text(message)));
            Client.send(sender, queue.name, "one");
            assertEquals("one", heard.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS));
            context.stop();
            Client.send(sender, queue.name, "two", "three");
            Broker.awaitUnsettled(id, queue, 2);
            assertNull(heard.poll(Client.LULL_MS, TimeUnit.MILLISECONDS));
            context.start();
            assertEquals("two", heard.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS));
            assertEquals("three", heard.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS));
        }
    }

    private static String text(Message message) {
        try {
            return message.getBody(String.class);
        } catch (JMSException failed) {
            throw new JMSRuntimeException(failed.getMessage());
        }
    }

    @Test
    void aConnectionHandsOutNothingBeforeItsStart() throws JMSException {
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                Connection connection = Client.factory(null).createConnection()) {
            Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue.name));
            Client.send(sender, queue.name, "waiting");
            assertNull(consumer.receive(Client.LULL_MS));
            connection.start();
            assertEquals("waiting", consumer.receive(Client.PATIENCE_MS).getBody(String.class));
        }
    }

    @Test
    void aConnectionIsStoppedAndStartedManyTimesWhileMessagesCome() {
        try (OwnQueue queue = new OwnQueue();
                JMSContext sender = Client.context(null);
                JMSContext context = Client.context(null)) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            for (int n = 0; n < 50; n++) {
                context.stop();
                Client.send(sender, queue.name, "message " + n);
                context.start();
                assertEquals("message " + n, Client.text(consumer));
            }
            assertNull(consumer.receiveNoWait());
        }
    }
}
