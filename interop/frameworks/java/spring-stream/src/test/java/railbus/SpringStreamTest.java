package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.support.MessageBuilder;

/** Spring Cloud Stream: functions bound to a queue, its dead letters, a subscription and a queue with sessions. */
class SpringStreamTest {
    private static ConfigurableApplicationContext application;
    private static StreamBridge bridge;
    private static Application.Inbox inbox;

    @BeforeAll
    static void start() {
        application = new SpringApplicationBuilder(Application.class)
                .properties(Settings.of(System.getenv("RAILBUS_CONNECTION_STRING")))
                .run();
        bridge = application.getBean(StreamBridge.class);
        inbox = application.getBean(Application.Inbox.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static String send(String binding, String what) {
        String text = what + " " + UUID.randomUUID();
        assertTrue(bridge.send(binding, text));
        return text;
    }

    @Test
    void aFunctionIsGivenWhatIsSent() throws InterruptedException {
        String sent = send("send-out-0", "order");
        assertEquals(1, Application.Inbox.arrivals(inbox.orders, sent, 1));
    }

    @Test
    void aFunctionThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = send("send-out-0", "again");
        assertEquals(2, Application.Inbox.arrivals(inbox.orders, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws InterruptedException {
        String sent = send("send-out-0", "poison");
        assertEquals(3, Application.Inbox.arrivals(inbox.orders, sent, 3));
        assertEquals(1, Application.Inbox.arrivals(inbox.dead, sent, 1));
    }

    @Test
    void aSubscriptionHasAFunction() throws InterruptedException {
        String sent = send("publish-out-0", "event");
        assertEquals(1, Application.Inbox.arrivals(inbox.events, sent, 1));
    }

    @Test
    void theBinderDeadLettersWhatIsNotToComeAgain() throws InterruptedException {
        String sent = send("publish-out-0", "poison");
        assertEquals(1, Application.Inbox.arrivals(inbox.events, sent, 1));
        assertEquals(1, Application.Inbox.arrivals(inbox.deadEvents, sent + ": ", 1));
        assertTrue(inbox.events.stream().noneMatch(sent::equals), "it came once");
    }

    @Test
    void aSessionComesInItsOrder() throws InterruptedException {
        String session = UUID.randomUUID().toString();
        for (int number = 0; number < 10; number++) {
            var message = MessageBuilder.withPayload("" + number)
                    .setHeader(ServiceBusMessageHeaders.SESSION_ID, session)
                    .build();
            assertTrue(bridge.send("sendSession-out-0", message));
        }
        for (int number = 0; number < 10; number++) {
            assertEquals(1, Application.Inbox.arrivals(inbox.sessions, session + ": " + number, 1));
        }
    }
}
