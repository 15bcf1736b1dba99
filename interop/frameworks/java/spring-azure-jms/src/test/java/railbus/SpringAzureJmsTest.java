package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Topic;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jms.config.JmsListenerEndpointRegistry;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

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
        template.setReceiveTimeout(TimeUnit.SECONDS.toMillis(Application.PATIENCE_S));
        inbox = application.getBean(Application.Inbox.class);
        awaitSubscription();
    }

    /** The listener makes its subscription after the start has returned. What is published before is not in it. */
    private static void awaitSubscription() {
        var listener = (DefaultMessageListenerContainer) application
                .getBean(JmsListenerEndpointRegistry.class)
                .getListenerContainer(Application.EVENTS);
        Awaitility.await()
                .atMost(Application.PATIENCE_S, TimeUnit.SECONDS)
                .until(listener::isRegisteredWithDestination);
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

    @Test
    void aRequestIsAnsweredOverATemporaryQueue() throws JMSException {
        String question = unique("question");
        Message answer = template.sendAndReceive(
                Application.REQUESTS, session -> session.createTextMessage(question));
        assertNotNull(answer, "no answer came");
        assertEquals("answer to " + question, answer.getBody(String.class));
    }
}
