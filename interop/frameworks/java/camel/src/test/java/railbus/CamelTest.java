package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.camel.CamelContext;
import org.apache.camel.Exchange;
import org.apache.camel.Message;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.amqp.AMQPComponent;
import org.apache.camel.component.azure.servicebus.ServiceBusComponent;
import org.apache.camel.impl.DefaultCamelContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Apache Camel: routes from and to queues and topics, over the SDK and over plain AMQP. */
class CamelTest {
    private static final String ORDERS = "azure-servicebus:frameworks-camel?serviceBusType=queue";
    private static final String EVENTS_TOPIC = "azure-servicebus:frameworks-camel-events?serviceBusType=topic";
    private static final String SESSIONS = "azure-servicebus:frameworks-camel-sessions?serviceBusType=queue";
    private static final String PLAIN_QUEUE = "amqp:queue:frameworks-camel-plain";
    private static final String PLAIN_TOPIC = "amqp:topic:frameworks-camel-events";
    private static final String PLAIN_SUBSCRIPTION = "amqp:queue:frameworks-camel-events/Subscriptions/plain";
    private static final int PATIENCE_S = 60;
    private static final String REQUESTS = "amqp:queue:frameworks-camel-requests?requestTimeout=" + PATIENCE_S * 1_000;

    private static final CamelContext CONTEXT = new DefaultCamelContext();
    private static ProducerTemplate template;

    private static final BlockingQueue<String> ARRIVED = new LinkedBlockingQueue<>();
    private static final BlockingQueue<String> EVENTS = new LinkedBlockingQueue<>();
    private static final BlockingQueue<String> DEAD = new LinkedBlockingQueue<>();
    private static final BlockingQueue<String> IN_SESSIONS = new LinkedBlockingQueue<>();
    private static final BlockingQueue<String> PLAIN_EVENTS = new LinkedBlockingQueue<>();
    private static final BlockingQueue<String> PLAIN = new LinkedBlockingQueue<>();

    @BeforeAll
    static void start() throws Exception {
        ServiceBusComponent sdk = CONTEXT.getComponent("azure-servicebus", ServiceBusComponent.class);
        sdk.getConfiguration().setConnectionString(System.getenv("RAILBUS_CONNECTION_STRING"));
        String address = "amqp://" + System.getenv("RAILBUS_HOST") + ":" + System.getenv("RAILBUS_PORT");
        CONTEXT.addComponent(
                "amqp", AMQPComponent.amqpComponent(address, "RootManageSharedAccessKey", "SAS_KEY_VALUE"));
        CONTEXT.addRoutes(new Routes());
        CONTEXT.start();
        template = CONTEXT.createProducerTemplate();
    }

    @AfterAll
    static void stop() {
        CONTEXT.stop();
    }

    private static class Routes extends RouteBuilder {
        @Override
        public void configure() {
            from(ORDERS).process(this::handle);
            from(ORDERS + "&subQueue=DEAD_LETTER_QUEUE").process(exchange -> DEAD.add(text(exchange)));
            from(EVENTS_TOPIC + "&subscriptionName=all").process(exchange -> EVENTS.add(text(exchange)));
            from(SESSIONS + "&sessionEnabled=true").process(this::handleInSession);
            from(PLAIN_SUBSCRIPTION).process(exchange -> PLAIN_EVENTS.add(text(exchange)));
            from(PLAIN_QUEUE + "?transacted=true").process(this::handlePlain);
            from(REQUESTS).transform(body().prepend("answer to "));
        }

        /** Fails on what says "poison", and on what says "again" the first time. */
        private void handle(Exchange exchange) {
            String text = text(exchange);
            ARRIVED.add(text);
            long delivered = exchange.getMessage().getHeader("CamelAzureServiceBusDeliveryCount", Long.class);
            fail(text, delivered > 0);
        }

        private void handleInSession(Exchange exchange) {
            String session = exchange.getMessage().getHeader("CamelAzureServiceBusSessionId", String.class);
            IN_SESSIONS.add(session + ": " + text(exchange));
        }

        private void handlePlain(Exchange exchange) {
            String text = text(exchange);
            PLAIN.add(text);
            fail(text, exchange.getMessage().getHeader("JMSRedelivered", Boolean.class));
        }

        private static void fail(String text, boolean again) {
            if (text.startsWith("poison") || (text.startsWith("again") && !again)) {
                throw new IllegalStateException("not handled");
            }
        }

        private static String text(Exchange exchange) {
            Message message = exchange.getMessage();
            return message.getBody(String.class);
        }
    }

    private static String unique(String what) {
        return what + " " + UUID.randomUUID();
    }

    /** Waits until a text has arrived this often, and says how often it has. Others are left behind. */
    private static int arrivals(BlockingQueue<String> from, String text, int expected) throws InterruptedException {
        int arrived = 0;
        while (arrived < expected) {
            String next = from.poll(PATIENCE_S, TimeUnit.SECONDS);
            if (next == null) {
                break;
            }
            arrived += next.equals(text) ? 1 : 0;
        }
        return arrived;
    }

    @Test
    void aRouteSendsAndAnotherReceives() throws InterruptedException {
        String sent = unique("order");
        template.sendBody(ORDERS, sent);
        assertEquals(1, arrivals(ARRIVED, sent, 1));
    }

    @Test
    void aRouteThatFailsIsGivenTheMessageAgain() throws InterruptedException {
        String sent = unique("again");
        template.sendBody(ORDERS, sent);
        assertEquals(2, arrivals(ARRIVED, sent, 2));
    }

    @Test
    void aMessageWhoseDeliveriesAreUsedUpIsDeadLettered() throws InterruptedException {
        String sent = unique("poison");
        template.sendBody(ORDERS, sent);
        assertEquals(3, arrivals(ARRIVED, sent, 3));
        assertEquals(1, arrivals(DEAD, sent, 1));
    }

    @Test
    void aSubscriptionFeedsARoute() throws InterruptedException {
        String sent = unique("event");
        template.sendBody(EVENTS_TOPIC, sent);
        assertEquals(1, arrivals(EVENTS, sent, 1));
    }

    @Test
    void aRouteReceivesTheMessagesOfSessions() throws InterruptedException {
        String sent = unique("order");
        template.sendBody(SESSIONS + "&sessionId=red", sent);
        assertEquals(1, arrivals(IN_SESSIONS, "red: " + sent, 1));
    }

    @Test
    void aTransactedRouteOverPlainAmqpIsGivenTheMessageAgain() throws InterruptedException {
        String sent = unique("again");
        template.sendBody(PLAIN_QUEUE, sent);
        assertEquals(2, arrivals(PLAIN, sent, 2));
    }

    @Test
    void aSubscriptionFeedsARouteOverPlainAmqp() throws InterruptedException {
        String sent = unique("event");
        template.sendBody(PLAIN_TOPIC, sent);
        assertEquals(1, arrivals(PLAIN_EVENTS, sent, 1));
    }

    @Test
    void anExchangeInOutIsAnsweredOverATemporaryQueue() {
        String question = unique("question");
        assertEquals("answer to " + question, template.requestBody(REQUESTS, question, String.class));
    }

    @Test
    void exchangesAtTheSameTimeGetTheirOwnAnswersOverOneTemporaryQueue() throws Exception {
        List<String> questions =
                IntStream.range(0, 40).mapToObj(n -> unique("question " + n)).toList();
        List<CompletableFuture<String>> answers = questions.stream()
                .map(question -> template.asyncRequestBody(REQUESTS, question, String.class))
                .toList();
        for (int n = 0; n < questions.size(); n++) {
            assertEquals("answer to " + questions.get(n), answers.get(n).get());
        }
    }
}
