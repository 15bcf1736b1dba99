package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Client.assertSays;

import jakarta.jms.Connection;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import railbus.Broker.OwnQueue;

/** What a program is told when the broker ends what it uses: an entity, or its connection. */
class ExceptionListenerTest {
    private final BlockingQueue<JMSException> told = new LinkedBlockingQueue<>();

    private static String clientId() {
        return "listener-" + UUID.randomUUID();
    }

    private JMSException told() throws InterruptedException {
        JMSException exception = told.poll(Client.PATIENCE_MS, TimeUnit.MILLISECONDS);
        assertNotNull(exception, "no exception came");
        return exception;
    }

    @Test
    void theListenerHearsThatTheQueueOfAMessageListenerWasDeleted() throws InterruptedException {
        try (OwnQueue deleted = new OwnQueue();
                OwnQueue kept = new OwnQueue();
                JMSContext context = Client.context(null)) {
            context.setExceptionListener(told::add);
            JMSConsumer listening = context.createConsumer(context.createQueue(deleted.name));
            listening.setMessageListener(message -> {});
            deleted.delete();
            assertSays("amqp:not-found", told());
            // The connection goes on.
            try (JMSContext other = context.createContext(JMSContext.AUTO_ACKNOWLEDGE)) {
                Client.send(other, kept.name, "still");
                assertEquals("still", Client.text(other.createConsumer(other.createQueue(kept.name))));
            }
        }
    }

    @Test
    void aReceiveEndsWhenItsQueueIsDeleted() {
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = Client.prefetching(null, 10).createContext()) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            CompletableFuture<Message> waiting =
                    CompletableFuture.supplyAsync(() -> consumer.receive(Client.PATIENCE_MS));
            queue.delete();
            assertSays("amqp:not-found", assertThrows(ExecutionException.class, waiting::get));
            assertThrows(JMSRuntimeException.class, consumer::receiveNoWait);
        }
    }

    @Test
    void aProducerFailsOnceItsQueueIsDeleted() throws JMSException {
        try (OwnQueue own = new OwnQueue();
                Connection connection = Client.factory(null).createConnection()) {
            Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(own.name);
            MessageProducer producer = session.createProducer(queue);
            producer.send(session.createTextMessage("before"));
            own.delete();
            assertThrows(JMSException.class, () -> producer.send(session.createTextMessage("after")));
            if (!Client.makesEntities()) {
                assertThrows(InvalidDestinationException.class, () -> session.createProducer(queue));
            }
        }
    }

    @Test
    void theListenerHearsThatTheBrokerClosedTheConnection() throws InterruptedException {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue()) {
            JMSContext context = Client.reconnecting(id, false).createContext();
            context.setExceptionListener(told::add);
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            Broker.closeConnection(id);
            assertSays("amqp:connection:forced", told());
            assertThrows(JMSRuntimeException.class, consumer::receiveNoWait);
            assertThrows(JMSRuntimeException.class, () -> Client.send(context, queue.name, "lost"));
            Client.closeFailed(context);
            try (JMSContext anew = Client.context(id)) {
                Client.send(anew, queue.name, "found");
                assertEquals("found", Client.text(anew.createConsumer(anew.createQueue(queue.name))));
            }
        }
    }

    @Test
    void aConnectionThatConnectsAgainHasNewSessionsAfterTheBrokerClosedIt() {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = Client.reconnecting(id, true).createContext()) {
            for (int n = 0; n < 3; n++) {
                Broker.closeConnection(id);
                try (JMSContext session = context.createContext(JMSContext.AUTO_ACKNOWLEDGE)) {
                    Client.send(session, queue.name, "message " + n);
                    assertEquals("message " + n, Client.text(session.createConsumer(session.createQueue(queue.name))));
                }
            }
        }
    }

    @Test
    void aConsumerOfAConnectionThatConnectsAgainGoesOnAfterTheBrokerClosedIt() {
        String id = clientId();
        try (OwnQueue queue = new OwnQueue();
                JMSContext context = Client.reconnecting(id, true).createContext()) {
            context.setExceptionListener(told::add);
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue.name));
            for (int n = 0; n < 3; n++) {
                Client.send(context, queue.name, "message " + n);
                assertEquals("message " + n, Client.text(consumer));
                Broker.closeConnection(id);
            }
            Client.send(context, queue.name, "last");
            assertEquals("last", Client.text(consumer));
            assertEquals(List.of(), List.copyOf(told));
        }
    }
}
