package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.Client;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.DeliveryState;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Session;
import org.apache.qpid.protonj2.client.Tracker;
import org.apache.qpid.protonj2.client.exceptions.ClientException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** protonj2's imperative client: each delivery settled by hand, and a transaction. */
class ProtonTest {
    private static final String QUEUE = "frameworks-protonj2";
    private static final int PATIENCE_S = 60;

    private Client client;
    private Connection connection;

    @BeforeEach
    void connect() throws ClientException {
        client = Client.create();
        connection = connect("SAS_KEY_VALUE");
    }

    @AfterEach
    void close() {
        connection.close();
        client.close();
    }

    private Connection connect(String key) throws ClientException {
        ConnectionOptions options =
                new ConnectionOptions().user("RootManageSharedAccessKey").password(key).reconnectEnabled(false);
        return client.connect(
                System.getenv("RAILBUS_HOST"), Integer.parseInt(System.getenv("RAILBUS_PORT")), options);
    }

    private void send(String address, String id, String body) throws Exception {
        try (var sender = connection.openSender(address)) {
            Tracker tracker = sender.send(Message.create(body).messageId(id));
            tracker.settlementFuture().get(PATIENCE_S, TimeUnit.SECONDS);
            assertEquals(DeliveryState.Type.ACCEPTED, tracker.remoteState().getType());
        }
    }

    private Receiver receiver(String address) throws ClientException {
        return connection.openReceiver(address, new ReceiverOptions().autoAccept(false).creditWindow(1));
    }

    private static Delivery next(Receiver receiver) throws ClientException {
        return receiver.receive(PATIENCE_S, TimeUnit.SECONDS);
    }

    private static String unique() {
        return UUID.randomUUID().toString();
    }

    @Test
    void aMessageIsSentAndAccepted() throws Exception {
        String id = unique();
        send(QUEUE, id, "order");
        try (Receiver receiver = receiver(QUEUE)) {
            Delivery delivery = next(receiver);
            assertEquals("order", delivery.message().body());
            assertEquals(id, delivery.message().messageId());
            delivery.accept();
        }
    }

    @Test
    void aMessageWhoseDeliveryFailedComesAgainWithItsCountRaised() throws Exception {
        send(QUEUE, unique(), "again");
        try (Receiver receiver = receiver(QUEUE)) {
            Delivery first = next(receiver);
            assertEquals(0, first.message().deliveryCount());
            first.modified(true, false);
            Delivery second = next(receiver);
            assertEquals(1, second.message().deliveryCount());
            second.accept();
        }
    }

    @Test
    void aMessageThatIsRejectedIsDeadLettered() throws Exception {
        String id = unique();
        send(QUEUE, id, "bad");
        try (Receiver receiver = receiver(QUEUE);
                Receiver dead = receiver(QUEUE + "/$DeadLetterQueue")) {
            next(receiver).reject("example:bad", "cannot be read");
            Delivery delivery = next(dead);
            assertEquals(id, delivery.message().messageId());
            delivery.accept();
        }
    }

    @Test
    void aTransactionSendsAndAcceptsTogether() throws Exception {
        String id = unique();
        send(QUEUE, unique(), "work");
        Session session = connection.openSession();
        try (Receiver receiver = session.openReceiver(QUEUE, new ReceiverOptions().autoAccept(false).creditWindow(1));
                var sender = session.openSender("frameworks-protonj2-done")) {
            session.beginTransaction();
            Delivery work = next(receiver);
            sender.send(Message.create("done").messageId(id));
            work.accept();
            session.commitTransaction();
        }
        try (Receiver receiver = receiver("frameworks-protonj2-done")) {
            Delivery done = next(receiver);
            assertEquals(id, done.message().messageId());
            done.accept();
        }
    }

    @Test
    void aSubscriptionGetsWhatItsTopicIsSent() throws Exception {
        String id = unique();
        send("frameworks-protonj2-events", id, "event");
        try (Receiver receiver = receiver("frameworks-protonj2-events/Subscriptions/all")) {
            Delivery event = next(receiver);
            assertEquals(id, event.message().messageId());
            event.accept();
        }
    }

    @Test
    void aReplyComesToADynamicReceiver() throws Exception {
        try (Receiver replies = connection.openDynamicReceiver()) {
            String id = unique();
            try (var sender = connection.openSender(QUEUE)) {
                sender.send(Message.create("question").messageId(id).replyTo(replies.address()));
            }
            try (Connection service = connect("SAS_KEY_VALUE");
                    Receiver requests = service.openReceiver(QUEUE)) {
                Message<?> request = next(requests).message();
                try (var sender = service.openSender(request.replyTo())) {
                    sender.send(Message.create("answer").correlationId(request.messageId()));
                }
            }
            Message<?> answer = next(replies).message();
            assertEquals(id, answer.correlationId());
            assertEquals("answer", answer.body());
        }
    }

    @Test
    void aQueueThatIsMissingIsNotFound() {
        Exception refused = assertThrows(
                Exception.class,
                () -> connection.openSender("no-such-queue").openFuture().get(PATIENCE_S, TimeUnit.SECONDS));
        assertTrue(refused.toString().contains("not-found"), refused.toString());
    }

    @Test
    void aWrongKeyIsRefused() {
        assertThrows(
                Exception.class,
                () -> connect("WRONG_KEY_VALUE").openFuture().get(PATIENCE_S, TimeUnit.SECONDS));
    }
}
