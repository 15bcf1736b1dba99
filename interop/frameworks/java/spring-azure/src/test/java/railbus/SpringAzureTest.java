package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.spring.messaging.servicebus.core.ServiceBusTemplate;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.support.MessageBuilder;

/** Spring Cloud Azure: an application with a template and listeners, set up from its properties. */
class SpringAzureTest {
    private static ConfigurableApplicationContext application;
    private static ServiceBusTemplate template;
    private static Application.Inbox inbox;

    @BeforeAll
    static void start() {
        application = new SpringApplicationBuilder(Application.class)
                .properties(
                        "spring.cloud.azure.servicebus.connection-string=" + System.getenv("RAILBUS_CONNECTION_STRING"),
                        "spring.cloud.azure.servicebus.entity-type=queue",
                        "logging.level.root=ERROR",
                        "spring.main.banner-mode=off")
                .run();
        template = application.getBean(ServiceBusTemplate.class);
        inbox = application.getBean(Application.Inbox.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static String send(String destination, String what) {
        String text = what + " " + UUID.randomUUID();
        template.send(destination, MessageBuilder.withPayload(text).build());
        return text;
    }

    private static void sendInSession(String session, String text) {
        var message = MessageBuilder.withPayload(text)
                .setHeader(ServiceBusMessageHeaders.SESSION_ID, session)
                .build();
        template.send(Application.SESSIONS, message);
    }

    @Test
    void aListenerIsGivenWhatATemplateSends() throws InterruptedException {
        String sent = send(Application.QUEUE, "order");
        assertEquals(1, Application.Inbox.arrivals(inbox.queue, sent, 1));
    }

    @Test
    void aListenerThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = send(Application.QUEUE, "again");
        assertEquals(2, Application.Inbox.arrivals(inbox.queue, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws InterruptedException {
        String sent = send(Application.QUEUE, "poison");
        assertEquals(3, Application.Inbox.arrivals(inbox.queue, sent, 3));
        assertEquals(1, Application.Inbox.arrivals(inbox.dead, sent, 1));
    }

    @Test
    void aSubscriptionHasAListener() throws InterruptedException {
        String sent = send(Application.TOPIC, "event");
        assertEquals(1, Application.Inbox.arrivals(inbox.subscription, sent, 1));
    }

    @Test
    void aListenerIsGivenEachSessionInItsOrderWithItsId() throws InterruptedException {
        String one = UUID.randomUUID().toString();
        String other = UUID.randomUUID().toString();
        List<String> texts = IntStream.range(0, 10).mapToObj(Integer::toString).toList();
        for (String text : texts) {
            sendInSession(one, text);
            sendInSession(other, "other " + text);
        }
        assertEquals(texts, Application.Inbox.next(inbox.session(one), 10));
        List<String> others = texts.stream().map(text -> "other " + text).toList();
        assertEquals(others, Application.Inbox.next(inbox.session(other), 10));
    }

    @Test
    void aMessageOfASessionThatFailsComesAgainInItsSession() throws InterruptedException {
        String session = UUID.randomUUID().toString();
        String text = "again " + session;
        sendInSession(session, text);
        assertEquals(List.of(text, text), Application.Inbox.next(inbox.session(session), 2));
        // It was settled, or it would come before this one.
        sendInSession(session, "next");
        assertEquals(List.of("next"), Application.Inbox.next(inbox.session(session), 1));
    }
}
