package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.quarkus.test.junit.QuarkusTest;
import jakarta.inject.Inject;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Emitter;
import org.junit.jupiter.api.Test;

/** Quarkus Messaging with SmallRye's AMQP connector: emitters, and consumers set up from the application's properties. */
@QuarkusTest
class QuarkusMessagingTest {
    private static final int PATIENCE_S = 60;

    @Inject
    Inbox inbox;

    @Inject
    @Channel("send")
    Emitter<String> orders;

    @Inject
    @Channel("publish")
    Emitter<String> events;

    /** Sends a text, and waits until the broker has accepted it. */
    private static String send(Emitter<String> emitter, String what) throws Exception {
        String text = what + " " + UUID.randomUUID();
        emitter.send(text).toCompletableFuture().get(PATIENCE_S, TimeUnit.SECONDS);
        return text;
    }

    @Test
    void aConsumerIsGivenWhatIsSent() throws Exception {
        String sent = send(orders, "order");
        assertEquals(1, Inbox.arrivals(inbox.orders, sent, 1));
    }

    @Test
    void aConsumerThatFailsIsGivenTheMessageAgain() throws Exception {
        String sent = send(orders, "again");
        assertEquals(2, Inbox.arrivals(inbox.orders, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws Exception {
        String sent = send(orders, "poison");
        assertEquals(3, Inbox.arrivals(inbox.orders, sent, 3));
        assertEquals(1, Inbox.arrivals(inbox.dead, sent, 1));
    }

    @Test
    void aSubscriptionHasAConsumer() throws Exception {
        String sent = send(events, "event");
        assertEquals(1, Inbox.arrivals(inbox.events, sent, 1));
    }

    @Test
    void aMessageThatIsRejectedIsDeadLetteredAtOnce() throws Exception {
        String sent = send(events, "poison");
        assertEquals(1, Inbox.arrivals(inbox.events, sent, 1));
        assertEquals(1, Inbox.arrivals(inbox.deadEvents, sent, 1));
    }
}
