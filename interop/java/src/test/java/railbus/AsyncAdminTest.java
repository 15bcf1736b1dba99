package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.message;

import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceExistsException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationAsyncClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.SubscriptionRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.io.IOException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The asynchronous administration client, with a broker whose authority is one that {@code run} has made. */
class AsyncAdminTest extends AsyncClients {
    private ServiceBusAdministrationAsyncClient admin;

    @Override
    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker("clock.json", "--tls-dir", System.getenv("OWN_BROKER_TLS"));
        admin = Administration.by(broker.connectionString).buildAsyncClient();
    }

    private List<String> queues() {
        return admin.listQueues().map(QueueProperties::getName).collectList().block(PATIENCE);
    }

    private static <E extends HttpResponseException> E refused(Class<E> kind, Mono<?> asked) {
        return assertThrows(kind, () -> asked.block(PATIENCE));
    }

    @Test
    void aQueueIsCreatedReadListedUpdatedAndDeleted() {
        CreateQueueOptions given = new CreateQueueOptions().setLockDuration(Duration.ofSeconds(13))
            .setMaxDeliveryCount(17);
        QueueProperties found = admin.createQueue("jobs", given).then(admin.getQueue("jobs")).block(PATIENCE);
        assertEquals("jobs", found.getName());
        assertEquals(Duration.ofSeconds(13), found.getLockDuration());
        assertEquals(17, found.getMaxDeliveryCount());
        assertTrue(queues().contains("jobs"));
        found.setLockDuration(Duration.ofSeconds(14)).setUserMetadata("a <b> & \"c\" ä");
        found = admin.updateQueue(found).then(admin.getQueue("jobs")).block(PATIENCE);
        assertEquals(Duration.ofSeconds(14), found.getLockDuration());
        assertEquals("a <b> & \"c\" ä", found.getUserMetadata());
        assertEquals(17, found.getMaxDeliveryCount());
        assertTrue(admin.getQueueExists("jobs").block(PATIENCE));
        assertFalse(admin.deleteQueue("jobs").then(admin.getQueueExists("jobs")).block(PATIENCE));
        assertFalse(queues().contains("jobs"));
        refused(ResourceNotFoundException.class, admin.getQueue("jobs"));
    }

    @Test
    void aTopicAndItsSubscriptionAreCreatedReadListedUpdatedAndDeleted() {
        CreateTopicOptions given = new CreateTopicOptions().setDefaultMessageTimeToLive(Duration.ofHours(1));
        TopicProperties topic = admin.createTopic("events", given).then(admin.getTopic("events")).block(PATIENCE);
        assertEquals("events", topic.getName());
        assertEquals(Duration.ofHours(1), topic.getDefaultMessageTimeToLive());
        topic.setDefaultMessageTimeToLive(Duration.ofHours(2));
        topic = admin.updateTopic(topic).then(admin.getTopic("events")).block(PATIENCE);
        assertEquals(Duration.ofHours(2), topic.getDefaultMessageTimeToLive());
        assertEquals(List.of("events"), topics());

        CreateSubscriptionOptions four = new CreateSubscriptionOptions().setMaxDeliveryCount(4);
        SubscriptionProperties all = admin.createSubscription("events", "all", four)
            .then(admin.getSubscription("events", "all")).block(PATIENCE);
        assertEquals("all", all.getSubscriptionName());
        assertEquals(4, all.getMaxDeliveryCount());
        all.setMaxDeliveryCount(5);
        all = admin.updateSubscription(all).then(admin.getSubscription("events", "all")).block(PATIENCE);
        assertEquals(5, all.getMaxDeliveryCount());
        assertEquals(List.of("all"), subscriptions());
        assertFalse(admin.deleteSubscription("events", "all").then(admin.getSubscriptionExists("events", "all"))
            .block(PATIENCE));
        assertEquals(List.of(), subscriptions());
        assertFalse(admin.deleteTopic("events").then(admin.getTopicExists("events")).block(PATIENCE));
        assertEquals(List.of(), topics());
    }

    private List<String> topics() {
        return admin.listTopics().map(TopicProperties::getName).collectList().block(PATIENCE);
    }

    private List<String> subscriptions() {
        return admin.listSubscriptions("events").map(SubscriptionProperties::getSubscriptionName).collectList()
            .block(PATIENCE);
    }

    @Test
    void aRuleIsCreatedReadListedUpdatedAndDeleted() {
        admin.createTopic("events").then(admin.createSubscription("events", "all")).block(PATIENCE);
        RuleProperties usual = admin.listRules("events", "all").single().block(PATIENCE);
        assertEquals("$Default", usual.getName());
        assertInstanceOf(TrueRuleFilter.class, usual.getFilter());
        CreateRuleOptions given = new CreateRuleOptions(new SqlRuleFilter("colour = 'red'"))
            .setAction(new SqlRuleAction("SET seen = 1"));
        RuleProperties red = admin.createRule("events", "all", "red", given)
            .then(admin.getRule("events", "all", "red")).block(PATIENCE);
        assertEquals("colour = 'red'", assertInstanceOf(SqlRuleFilter.class, red.getFilter()).getSqlExpression());
        assertEquals("SET seen = 1", assertInstanceOf(SqlRuleAction.class, red.getAction()).getSqlExpression());
        red.setFilter(new CorrelationRuleFilter().setLabel("red"));
        red = admin.updateRule("events", "all", red).then(admin.getRule("events", "all", "red")).block(PATIENCE);
        assertEquals("red", assertInstanceOf(CorrelationRuleFilter.class, red.getFilter()).getLabel());
        admin.deleteRule("events", "all", "$Default").block(PATIENCE);
        assertEquals("red", admin.listRules("events", "all").single().block(PATIENCE).getName());
    }

    @Test
    void listsHaveEveryNameOnce() {
        List<String> names = IntStream.range(0, 120).mapToObj("many-%03d"::formatted).toList();
        List<String> before = queues();
        Flux.fromIterable(names).flatMap(admin::createQueue, 8).blockLast(PATIENCE);
        List<String> listed = queues();
        assertEquals(names, listed.stream().filter(names::contains).toList());
        assertEquals(before, listed.stream().filter(name -> !names.contains(name)).toList());
    }

    @Test
    void runtimePropertiesAreThoseOfTheMoment() {
        admin.createQueue("jobs").then(admin.createTopic("events")).then(admin.createSubscription("events", "all"))
            .block(PATIENCE);
        ServiceBusSenderAsyncClient jobs = sender("jobs");
        jobs.sendMessages(List.of(message("one"), message("two")))
            .then(jobs.scheduleMessage(message("later"), OffsetDateTime.now().plusHours(1))).block(PATIENCE);
        open(builder().sender().topicName("events").buildAsyncClient()).sendMessage(message("told")).block(PATIENCE);
        QueueRuntimeProperties queue = admin.getQueueRuntimeProperties("jobs").block(PATIENCE);
        assertEquals(2, queue.getActiveMessageCount());
        assertEquals(1, queue.getScheduledMessageCount());
        assertEquals(0, queue.getDeadLetterMessageCount());
        assertEquals(3, queue.getTotalMessageCount());
        assertTrue(queue.getSizeInBytes() > 0);
        assertFalse(queue.getAccessedAt().isBefore(queue.getCreatedAt()));
        assertEquals(1, admin.getTopicRuntimeProperties("events").block(PATIENCE).getSubscriptionCount());
        SubscriptionRuntimeProperties all =
            admin.getSubscriptionRuntimeProperties("events", "all").block(PATIENCE);
        assertEquals(1, all.getActiveMessageCount());
        assertEquals(1, all.getTotalMessageCount());
    }

    @Test
    void ofManyWhoCreateTheSameOneSucceeds() {
        Long created = Flux.range(0, 8)
            .flatMap(number -> admin.createQueue("race").onErrorResume(ResourceExistsException.class, it -> Mono.empty()))
            .count().block(PATIENCE);
        assertEquals(1, created);
    }

    @Test
    void whatIsMissingIsNotFound() {
        admin.createTopic("events").then(admin.createSubscription("events", "all")).block(PATIENCE);
        for (Mono<?> missing : List.of(
            admin.getQueue("missing"),
            admin.getQueueRuntimeProperties("missing"),
            admin.deleteQueue("missing"),
            admin.getTopic("missing"),
            admin.deleteTopic("missing"),
            admin.createSubscription("missing", "all"),
            admin.getSubscription("events", "missing"),
            admin.deleteSubscription("events", "missing"),
            admin.createRule("events", "missing", "red"),
            admin.getRule("events", "all", "missing"),
            admin.deleteRule("events", "all", "missing"))) {
            refused(ResourceNotFoundException.class, missing);
        }
    }

    @Test
    void whatExistsIsNotCreatedAgain() {
        admin.createTopic("events").then(admin.createSubscription("events", "all")).block(PATIENCE);
        for (Mono<?> existing : List.of(
            admin.createQueue("orders"),
            admin.createTopic("orders"),
            admin.createTopic("events"),
            admin.createSubscription("events", "all"),
            admin.createRule("events", "all", "$Default"))) {
            refused(ResourceExistsException.class, existing);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"a!b", "ä", "a$b", "a,b"})
    void aCharacterThatIsNotAllowedIsRefused(String name) {
        List<String> before = queues();
        HttpResponseException refused = refused(HttpResponseException.class, admin.createQueue(name));
        assertEquals(400, refused.getResponse().getStatusCode());
        assertTrue(refused.getMessage().contains("contains character(s) that is not allowed by Service Bus."),
            refused::getMessage);
        assertEquals(before, queues());
    }

    @Test
    void whatIsWrongIsRefusedAndMakesNothing() {
        List<String> before = queues();
        CreateQueueOptions wrong = new CreateQueueOptions().setLockDuration(Duration.ofMinutes(6));
        HttpResponseException refused = refused(HttpResponseException.class, admin.createQueue("jobs", wrong));
        assertEquals(400, refused.getResponse().getStatusCode());
        QueueProperties orders = admin.getQueue("orders").block(PATIENCE);
        orders.setMaxDeliveryCount(0);
        refused = refused(HttpResponseException.class, admin.updateQueue(orders));
        assertEquals(400, refused.getResponse().getStatusCode());
        assertEquals(10, admin.getQueue("orders").block(PATIENCE).getMaxDeliveryCount());
        assertEquals(before, queues());
    }

    @Test
    void aWrongKeyIsUnauthorized() {
        String wrong = broker.connectionString.replace("AccessKey=", "AccessKey=wrong");
        ServiceBusAdministrationAsyncClient stranger = Administration.by(wrong).buildAsyncClient();
        refused(ClientAuthenticationException.class, stranger.createQueue("jobs"));
        assertFalse(admin.getQueueExists("jobs").block(PATIENCE));
    }
}
