package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.qpid.jms.JmsQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jms.core.JmsTemplate;

/** Spring Boot over Qpid JMS: an application with a template and listeners, as Boot sets them up. */
class SpringJmsTest {
    private static ConfigurableApplicationContext application;
    private static JmsTemplate template;
    private static Application.Inbox inbox;

    @BeforeAll
    static void start() {
        application = new SpringApplicationBuilder(Application.class)
                .properties("logging.level.root=ERROR", "spring.main.banner-mode=off")
                .run();
        template = application.getBean(JmsTemplate.class);
        template.setReceiveTimeout(TimeUnit.SECONDS.toMillis(Application.PATIENCE_S));
        inbox = application.getBean(Application.Inbox.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static String unique(String what) {
        return what + " " + UUID.randomUUID();
    }

    @Test
    void aListenerIsGivenWhatATemplateSends() throws InterruptedException {
        String sent = unique("order");
        template.convertAndSend(Application.QUEUE, sent);
        assertEquals(1, Application.Inbox.arrivals(inbox.queue, sent, 1));
    }

    @Test
    void aListenerThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = unique("again");
        template.convertAndSend(Application.QUEUE, sent);
        assertEquals(2, Application.Inbox.arrivals(inbox.queue, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws InterruptedException {
        String sent = unique("poison");
        template.convertAndSend(Application.QUEUE, sent);
        assertEquals(3, Application.Inbox.arrivals(inbox.queue, sent, 3));
        assertEquals(1, Application.Inbox.arrivals(inbox.dead, sent, 1));
    }

    @Test
    void aSubscriptionHasAListener() throws InterruptedException {
        String sent = unique("event");
        template.convertAndSend(Application.TOPIC, sent);
        assertEquals(1, Application.Inbox.arrivals(inbox.subscription, sent, 1));
    }

    @Test
    void aRequestIsAnsweredOverAQueueForAnswers() {
        String question = unique("question");
        template.convertAndSend(Application.REQUESTS, question, message -> {
            message.setJMSReplyTo(new JmsQueue(Application.ANSWERS));
            message.setJMSCorrelationID(question);
            return message;
        });
        String selector = "JMSCorrelationID = '" + question + "'";
        assertEquals("answer to " + question, template.receiveSelectedAndConvert(Application.ANSWERS, selector));
    }

    /** What the listener of requests answers over the temporary queue that the template makes for it. */
    private static String ask(String question) throws JMSException {
        Message answer = template.sendAndReceive(
                Application.REQUESTS, session -> session.createTextMessage(question));
        assertNotNull(answer, "no answer came");
        return answer.getBody(String.class);
    }

    @Test
    void aRequestIsAnsweredOverATemporaryQueue() throws JMSException {
        String question = unique("question");
        assertEquals("answer to " + question, ask(question));
    }

    @Test
    void aListenerThatFailsAnswersOverTheTemporaryQueueTheSecondTime() throws JMSException {
        String question = unique("again");
        assertEquals("answer to " + question, ask(question));
    }

    @Test
    void requestsAtTheSameTimeGetTheirOwnAnswers() throws Exception {
        List<String> questions =
                IntStream.range(0, 40).mapToObj(n -> unique("question " + n)).toList();
        ExecutorService programs = Executors.newFixedThreadPool(8);
        try {
            List<Future<String>> answers = questions.stream()
                    .map(question -> programs.submit(() -> ask(question)))
                    .toList();
            for (int n = 0; n < questions.size(); n++) {
                assertEquals("answer to " + questions.get(n), answers.get(n).get());
            }
        } finally {
            programs.shutdown();
        }
    }
}
