package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.vertx.amqp.AmqpClient;
import io.vertx.amqp.AmqpClientOptions;
import io.vertx.amqp.AmqpConnection;
import io.vertx.amqp.AmqpMessage;
import io.vertx.amqp.AmqpReceiver;
import io.vertx.amqp.AmqpReceiverOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.json.JsonObject;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Vert.x' AMQP client: senders that wait for the answer, receivers that settle by hand. */
class VertxTest {
    private static final String QUEUE = "frameworks-vertx";
    private static final int PATIENCE_S = 60;

    private Vertx vertx;
    private AmqpConnection connection;

    @BeforeEach
    void connect() throws Exception {
        vertx = Vertx.vertx();
        connection = await(client("SAS_KEY_VALUE").connect());
    }

    @AfterEach
    void close() throws Exception {
        await(connection.close());
        await(vertx.close());
    }

    private AmqpClient client(String key) {
        return AmqpClient.create(
                vertx,
                new AmqpClientOptions()
                        .setHost(System.getenv("RAILBUS_HOST"))
                        .setPort(Integer.parseInt(System.getenv("RAILBUS_PORT")))
                        .setUsername("RootManageSharedAccessKey")
                        .setPassword(key));
    }

    private static <T> T await(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(PATIENCE_S, TimeUnit.SECONDS);
    }

    private void send(String address, AmqpMessage message) throws Exception {
        await(await(connection.createSender(address)).sendWithAck(message));
    }

    /** What comes from an address. Each message is settled by the test. */
    private BlockingQueue<AmqpMessage> receive(String address) throws Exception {
        BlockingQueue<AmqpMessage> arrived = new LinkedBlockingQueue<>();
        AmqpReceiverOptions options = new AmqpReceiverOptions().setAutoAcknowledgement(false);
        await(connection.createReceiver(address, options)).handler(arrived::add);
        return arrived;
    }

    private static AmqpMessage next(BlockingQueue<AmqpMessage> from) throws InterruptedException {
        return from.poll(PATIENCE_S, TimeUnit.SECONDS);
    }

    @Test
    void aMessageIsSentAndAccepted() throws Exception {
        String id = UUID.randomUUID().toString();
        JsonObject properties = new JsonObject().put("colour", "red");
        send(QUEUE, AmqpMessage.create().id(id).withBody("order").applicationProperties(properties).build());
        AmqpMessage received = next(receive(QUEUE));
        assertEquals("order", received.bodyAsString());
        assertEquals(id, received.id());
        assertEquals(properties, received.applicationProperties());
        received.accepted();
    }

    @Test
    void aMessageThatIsReleasedComesAgain() throws Exception {
        send(QUEUE, AmqpMessage.create().withBody("again").build());
        BlockingQueue<AmqpMessage> arrived = receive(QUEUE);
        next(arrived).released();
        AmqpMessage again = next(arrived);
        assertEquals("again", again.bodyAsString());
        again.accepted();
    }

    @Test
    void aMessageThatIsRejectedIsDeadLettered() throws Exception {
        String id = UUID.randomUUID().toString();
        send(QUEUE, AmqpMessage.create().id(id).withBody("bad").build());
        next(receive(QUEUE)).rejected();
        AmqpMessage dead = next(receive(QUEUE + "/$DeadLetterQueue"));
        assertEquals(id, dead.id());
        dead.accepted();
    }

    @Test
    void aSubscriptionGetsWhatItsTopicIsSent() throws Exception {
        String id = UUID.randomUUID().toString();
        send("frameworks-vertx-events", AmqpMessage.create().id(id).withBody("event").build());
        AmqpMessage event = next(receive("frameworks-vertx-events/Subscriptions/all"));
        assertEquals(id, event.id());
        event.accepted();
    }

    @Test
    void aReplyComesToADynamicReceiver() throws Exception {
        AmqpReceiver replies = await(connection.createDynamicReceiver());
        BlockingQueue<AmqpMessage> answers = new LinkedBlockingQueue<>();
        replies.handler(answers::add);
        String id = UUID.randomUUID().toString();
        send(QUEUE, AmqpMessage.create().id(id).replyTo(replies.address()).withBody("question").build());

        AmqpConnection service = await(client("SAS_KEY_VALUE").connect());
        BlockingQueue<AmqpMessage> requests = new LinkedBlockingQueue<>();
        await(service.createReceiver(QUEUE)).handler(requests::add);
        AmqpMessage request = next(requests);
        AmqpMessage reply = AmqpMessage.create().correlationId(request.id()).withBody("answer").build();
        await(await(service.createSender(request.replyTo())).sendWithAck(reply));

        AmqpMessage answer = next(answers);
        assertEquals(id, answer.correlationId());
        assertEquals("answer", answer.bodyAsString());
        await(service.close());
    }

    @Test
    void theAddressOfADynamicReceiverGoesWithIt() throws Exception {
        AmqpReceiver replies = await(connection.createDynamicReceiver());
        String address = replies.address();
        await(await(connection.createSender(address)).close());
        await(replies.close());
        ExecutionException refused =
                assertThrows(ExecutionException.class, () -> await(connection.createSender(address)));
        assertTrue(refused.getMessage().contains("not-found"), refused.toString());
    }

    @Test
    void aQueueThatIsMissingFailsTheFuture() {
        ExecutionException refused =
                assertThrows(ExecutionException.class, () -> await(connection.createSender("no-such-queue")));
        assertTrue(refused.getMessage().contains("not-found"), refused.toString());
    }

    @Test
    void aWrongKeyFailsTheConnection() {
        assertThrows(ExecutionException.class, () -> await(client("WRONG_KEY_VALUE").connect()));
    }
}
