package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.jms.Topic;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jms.core.JmsTemplate;

/** The JMS starter of Spring Cloud Azure: an application with a template and listeners, set up from its properties. */
class SpringAzureJmsTest {
    private static ConfigurableApplicationContext application;
    private static JmsTemplate template;
    private static Application.Inbox inbox;

    @BeforeAll
    static void start() {
        application = new SpringApplicationBuilder(Application.class)
                .properties(
                        "spring.jms.servicebus.connection-string=Endpoint=sb://" + System.getenv("RAILBUS_ADDRESS")
                                + "/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
                        "spring.jms.servicebus.pricing-tier=premium",
                        "spring.jms.servicebus.topic-client-id=shop",
                        "logging.level.root=ERROR",
                        "spring.main.banner-mode=off")
                .run();
        template = application.getBean(JmsTemplate.class);
        inbox = application.getBean(Application.Inbox.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static String unique(String what) {
        return what + " " + UUID.randomUUID();
    }

    private static String send(String what) {
        String sent = unique(what);
        template.convertAndSend(Application.QUEUE, sent);
        return sent;
    }

    private static String publish(String what) {
        String sent = unique(what);
        Topic topic = template.execute(session -> session.createTopic(Application.TOPIC));
        template.convertAndSend(topic, sent);
        return sent;
    }

    @Test
    void aListenerIsGivenWhatATemplateSends() throws InterruptedException {
        String sent = send("order");
        assertEquals(1, Application.Inbox.arrivals(inbox.queue, sent, 1));
    }

    @Test
    void aListenerThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = send("again");
        assertEquals(2, Application.Inbox.arrivals(inbox.queue, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws InterruptedException {
        String sent = send("poison");
        assertEquals(3, Application.Inbox.arrivals(inbox.queue, sent, 3));
        assertEquals(1, Application.Inbox.arrivals(inbox.dead, sent, 1));
    }

    @Test
    void aListenerOfASubscriptionIsGivenWhatIsPublished() throws InterruptedException {
        String sent = publish("event");
        assertEquals(1, Application.Inbox.arrivals(inbox.subscription, sent, 1));
    }

    @Test
    void aListenerOfASubscriptionThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = publish("again");
        assertEquals(2, Application.Inbox.arrivals(inbox.subscription, sent, 2));
    }
}
