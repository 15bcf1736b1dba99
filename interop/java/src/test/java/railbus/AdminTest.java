package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceExistsException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.AccessRights;
import com.azure.messaging.servicebus.administration.models.AuthorizationRule;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.EmptyRuleAction;
import com.azure.messaging.servicebus.administration.models.EntityStatus;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.NamespaceProperties;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The administration client, every property of what it administers. */
class AdminTest {
    private static final String CONNECTION = System.getenv("RAILBUS_CONNECTION_STRING");
    private static final String FIRST = "5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0=";
    private static final String SECOND = "rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY=";

    private final ServiceBusAdministrationClient admin = Administration.by(CONNECTION).buildClient();

    /** A name that no other test or run has used. */
    private static String fresh(String what) {
        return "java-" + what + "-" + UUID.randomUUID().toString().substring(0, 13);
    }

    private static List<AuthorizationRule> access() {
        List<AccessRights> rights = List.of(AccessRights.MANAGE, AccessRights.SEND, AccessRights.LISTEN);
        return List.of(new SharedAccessAuthorizationRule("all", FIRST, SECOND, rights));
    }

    private static void same(List<AuthorizationRule> found) {
        assertEquals(1, found.size());
        AuthorizationRule rule = found.get(0);
        assertEquals("all", rule.getKeyName());
        assertEquals(FIRST, rule.getPrimaryKey());
        assertEquals(SECOND, rule.getSecondaryKey());
        assertEquals(3, rule.getAccessRights().size());
        // Times of a rule are its client's, and this one sends none.
        assertNull(rule.getCreatedAt());
    }

    @Test
    void everyPropertyOfAQueueComesBack() {
        String name = fresh("queue");
        CreateQueueOptions given = new CreateQueueOptions()
                .setLockDuration(Duration.ofSeconds(13))
                .setMaxSizeInMegabytes(2048)
                .setDuplicateDetectionRequired(true)
                .setSessionRequired(true)
                .setDefaultMessageTimeToLive(Duration.ofDays(1).plusSeconds(5))
                .setDeadLetteringOnMessageExpiration(true)
                .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(5))
                .setMaxDeliveryCount(17)
                .setBatchedOperationsEnabled(false)
                .setStatus(EntityStatus.ACTIVE)
                .setUserMetadata("a <b> & \"c\" ä")
                .setAutoDeleteOnIdle(Duration.ofHours(1))
                .setPartitioningEnabled(false)
                .setMaxMessageSizeInKilobytes(2048);
        given.getAuthorizationRules().addAll(access());
        admin.createQueue(name, given);
        QueueProperties found = admin.getQueue(name);
        assertEquals(name, found.getName());
        assertEquals(Duration.ofSeconds(13), found.getLockDuration());
        assertEquals(2048, found.getMaxSizeInMegabytes());
        assertTrue(found.isDuplicateDetectionRequired());
        assertTrue(found.isSessionRequired());
        assertEquals(Duration.ofDays(1).plusSeconds(5), found.getDefaultMessageTimeToLive());
        assertTrue(found.isDeadLetteringOnMessageExpiration());
        assertEquals(Duration.ofMinutes(5), found.getDuplicateDetectionHistoryTimeWindow());
        assertEquals(17, found.getMaxDeliveryCount());
        assertFalse(found.isBatchedOperationsEnabled());
        assertEquals("a <b> & \"c\" ä", found.getUserMetadata());
        assertEquals(Duration.ofHours(1), found.getAutoDeleteOnIdle());
        assertFalse(found.isPartitioningEnabled());
        assertEquals(2048, found.getMaxMessageSizeInKilobytes());
        same(found.getAuthorizationRules());
        List<Consumer<QueueProperties>> changes = List.of(
                queue -> queue.setLockDuration(Duration.ofSeconds(14)),
                queue -> queue.setMaxSizeInMegabytes(3072),
                queue -> queue.setDefaultMessageTimeToLive(Duration.ofHours(2)),
                queue -> queue.setDeadLetteringOnMessageExpiration(false),
                queue -> queue.setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(6)),
                queue -> queue.setMaxDeliveryCount(18),
                queue -> queue.setBatchedOperationsEnabled(true),
                queue -> queue.setStatus(EntityStatus.SEND_DISABLED),
                queue -> queue.setUserMetadata("other"),
                queue -> queue.setAutoDeleteOnIdle(Duration.ofHours(2)),
                queue -> queue.setMaxMessageSizeInKilobytes(3072));
        for (Consumer<QueueProperties> change : changes) {
            change.accept(found);
            admin.updateQueue(found);
            found = admin.getQueue(name);
        }
        assertEquals(Duration.ofSeconds(14), found.getLockDuration());
        assertEquals(3072, found.getMaxSizeInMegabytes());
        assertEquals(Duration.ofHours(2), found.getDefaultMessageTimeToLive());
        assertFalse(found.isDeadLetteringOnMessageExpiration());
        assertEquals(Duration.ofMinutes(6), found.getDuplicateDetectionHistoryTimeWindow());
        assertEquals(18, found.getMaxDeliveryCount());
        assertTrue(found.isBatchedOperationsEnabled());
        assertEquals(EntityStatus.SEND_DISABLED, found.getStatus());
        assertEquals("other", found.getUserMetadata());
        assertEquals(Duration.ofHours(2), found.getAutoDeleteOnIdle());
        assertEquals(3072, found.getMaxMessageSizeInKilobytes());
        same(found.getAuthorizationRules());
        assertTrue(admin.getQueueExists(name));
        admin.deleteQueue(name);
        assertFalse(admin.getQueueExists(name));
    }

    @Test
    void aQueueForwardsAndDeadLettersToOthers() {
        String name = fresh("forward");
        String target = fresh("target");
        admin.createQueue(target);
        admin.createQueue(
                name, new CreateQueueOptions().setForwardTo(target).setForwardDeadLetteredMessagesTo(target));
        QueueProperties found = admin.getQueue(name);
        assertTrue(found.getForwardTo().endsWith("/" + target), found.getForwardTo());
        assertTrue(found.getForwardDeadLetteredMessagesTo().endsWith("/" + target));
        CreateQueueOptions nowhere = new CreateQueueOptions().setForwardTo(fresh("missing"));
        assertThrows(ResourceNotFoundException.class, () -> admin.createQueue(fresh("nowhere"), nowhere));
        admin.deleteQueue(name);
        admin.deleteQueue(target);
    }

    @Test
    void everyPropertyOfATopicComesBack() {
        String name = fresh("topic");
        CreateTopicOptions given = new CreateTopicOptions()
                .setDefaultMessageTimeToLive(Duration.ofHours(1))
                .setMaxSizeInMegabytes(4096)
                .setDuplicateDetectionRequired(true)
                .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(5))
                .setBatchedOperationsEnabled(false)
                .setStatus(EntityStatus.ACTIVE)
                .setUserMetadata("mine")
                .setOrderingSupported(true)
                .setAutoDeleteOnIdle(Duration.ofHours(1))
                .setPartitioningEnabled(false)
                .setMaxMessageSizeInKilobytes(2048);
        given.getAuthorizationRules().addAll(access());
        admin.createTopic(name, given);
        TopicProperties found = admin.getTopic(name);
        assertEquals(name, found.getName());
        assertEquals(Duration.ofHours(1), found.getDefaultMessageTimeToLive());
        assertEquals(4096, found.getMaxSizeInMegabytes());
        assertTrue(found.isDuplicateDetectionRequired());
        assertEquals(Duration.ofMinutes(5), found.getDuplicateDetectionHistoryTimeWindow());
        assertFalse(found.isBatchedOperationsEnabled());
        assertEquals("mine", found.getUserMetadata());
        assertTrue(found.isOrderingSupported());
        assertEquals(Duration.ofHours(1), found.getAutoDeleteOnIdle());
        assertEquals(2048, found.getMaxMessageSizeInKilobytes());
        same(found.getAuthorizationRules());
        List<Consumer<TopicProperties>> changes = List.of(
                topic -> topic.setDefaultMessageTimeToLive(Duration.ofHours(2)),
                topic -> topic.setMaxSizeInMegabytes(5120),
                topic -> topic.setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(6)),
                topic -> topic.setStatus(EntityStatus.DISABLED),
                topic -> topic.setUserMetadata("yours"),
                topic -> topic.setOrderingSupported(false),
                topic -> topic.setAutoDeleteOnIdle(Duration.ofHours(2)),
                topic -> topic.setMaxMessageSizeInKilobytes(3072));
        for (Consumer<TopicProperties> change : changes) {
            change.accept(found);
            admin.updateTopic(found);
            found = admin.getTopic(name);
        }
        assertEquals(Duration.ofHours(2), found.getDefaultMessageTimeToLive());
        assertEquals(5120, found.getMaxSizeInMegabytes());
        assertEquals(Duration.ofMinutes(6), found.getDuplicateDetectionHistoryTimeWindow());
        assertEquals(EntityStatus.DISABLED, found.getStatus());
        assertEquals("yours", found.getUserMetadata());
        assertFalse(found.isOrderingSupported());
        assertEquals(Duration.ofHours(2), found.getAutoDeleteOnIdle());
        assertEquals(3072, found.getMaxMessageSizeInKilobytes());
        admin.deleteTopic(name);
        assertFalse(admin.getTopicExists(name));
    }

    @Test
    void everyPropertyOfASubscriptionComesBack() {
        String topic = fresh("topic");
        String target = fresh("target");
        admin.createTopic(topic);
        admin.createQueue(target);
        CreateSubscriptionOptions given = new CreateSubscriptionOptions()
                .setLockDuration(Duration.ofSeconds(20))
                .setSessionRequired(true)
                .setDefaultMessageTimeToLive(Duration.ofHours(1))
                .setDeadLetteringOnMessageExpiration(true)
                .setEnableDeadLetteringOnFilterEvaluationExceptions(false)
                .setMaxDeliveryCount(4)
                .setBatchedOperationsEnabled(false)
                .setStatus(EntityStatus.ACTIVE)
                .setUserMetadata("mine")
                .setForwardDeadLetteredMessagesTo(target);
        admin.createSubscription(topic, "s", given);
        SubscriptionProperties found = admin.getSubscription(topic, "s");
        assertEquals(topic, found.getTopicName());
        assertEquals("s", found.getSubscriptionName());
        assertEquals(Duration.ofSeconds(20), found.getLockDuration());
        assertTrue(found.isSessionRequired());
        assertEquals(Duration.ofHours(1), found.getDefaultMessageTimeToLive());
        assertTrue(found.isDeadLetteringOnMessageExpiration());
        assertFalse(found.isDeadLetteringOnFilterEvaluationExceptions());
        assertEquals(4, found.getMaxDeliveryCount());
        assertFalse(found.isBatchedOperationsEnabled());
        assertEquals("mine", found.getUserMetadata());
        assertTrue(found.getForwardDeadLetteredMessagesTo().endsWith("/" + target));
        List<Consumer<SubscriptionProperties>> changes = List.of(
                subscription -> subscription.setLockDuration(Duration.ofSeconds(21)),
                subscription -> subscription.setDeadLetteringOnMessageExpiration(false),
                subscription -> subscription.setEnableDeadLetteringOnFilterEvaluationExceptions(true),
                subscription -> subscription.setMaxDeliveryCount(5),
                subscription -> subscription.setBatchedOperationsEnabled(true),
                subscription -> subscription.setStatus(EntityStatus.RECEIVE_DISABLED),
                subscription -> subscription.setUserMetadata("yours"),
                subscription -> subscription.setForwardDeadLetteredMessagesTo(null),
                subscription -> subscription.setAutoDeleteOnIdle(Duration.ofHours(2)));
        for (Consumer<SubscriptionProperties> change : changes) {
            change.accept(found);
            admin.updateSubscription(found);
            found = admin.getSubscription(topic, "s");
        }
        assertEquals(Duration.ofSeconds(21), found.getLockDuration());
        assertFalse(found.isDeadLetteringOnMessageExpiration());
        assertTrue(found.isDeadLetteringOnFilterEvaluationExceptions());
        assertEquals(5, found.getMaxDeliveryCount());
        assertTrue(found.isBatchedOperationsEnabled());
        assertEquals(EntityStatus.RECEIVE_DISABLED, found.getStatus());
        assertEquals("yours", found.getUserMetadata());
        assertNull(found.getForwardDeadLetteredMessagesTo());
        assertEquals(Duration.ofHours(2), found.getAutoDeleteOnIdle());
        admin.deleteTopic(topic);
        assertFalse(admin.getSubscriptionExists(topic, "s"));
        admin.deleteQueue(target);
    }

    @Test
    void filtersOfEveryKindComeBack() {
        String topic = fresh("rules");
        admin.createTopic(topic);
        CreateRuleOptions only = new CreateRuleOptions(new CorrelationRuleFilter().setLabel("red"));
        admin.createSubscription(topic, "given", "only", new CreateSubscriptionOptions(), only);
        assertEquals(List.of("only"), names(topic, "given"));
        admin.createSubscription(topic, "s");
        assertInstanceOf(TrueRuleFilter.class, admin.getRule(topic, "s", "$Default").getFilter());
        CreateRuleOptions sql = new CreateRuleOptions(new SqlRuleFilter("n > 5 AND color = 'blue'"))
                .setAction(new SqlRuleAction("SET a = 1"));
        admin.createRule(topic, "sql", "s", sql);
        RuleProperties found = admin.getRule(topic, "s", "sql");
        assertEquals("n > 5 AND color = 'blue'", ((SqlRuleFilter) found.getFilter()).getSqlExpression());
        assertEquals("SET a = 1", ((SqlRuleAction) found.getAction()).getSqlExpression());
        admin.createRule(topic, "false", "s", new CreateRuleOptions(new FalseRuleFilter()));
        found = admin.getRule(topic, "s", "false");
        assertInstanceOf(FalseRuleFilter.class, found.getFilter());
        assertInstanceOf(EmptyRuleAction.class, found.getAction());
        CorrelationRuleFilter fields = new CorrelationRuleFilter("c").setMessageId("m").setTo("t").setReplyTo("r")
                .setLabel("l").setSessionId("s").setReplyToSessionId("rs").setContentType("ct");
        OffsetDateTime date = OffsetDateTime.of(2020, 7, 5, 11, 12, 13, 0, ZoneOffset.UTC);
        Map<String, Object> values = Map.of(
                "text", "blue & <red>", "int", 5, "long", 1L << 40, "double", 2.5, "yes", true, "date", date);
        fields.getProperties().putAll(values);
        admin.createRule(topic, "correlation", "s", new CreateRuleOptions(fields));
        found = admin.getRule(topic, "s", "correlation");
        CorrelationRuleFilter filter = (CorrelationRuleFilter) found.getFilter();
        assertEquals(List.of("c", "m", "t", "r", "l", "s", "rs", "ct"), List.of(
                filter.getCorrelationId(), filter.getMessageId(), filter.getTo(), filter.getReplyTo(),
                filter.getLabel(), filter.getSessionId(), filter.getReplyToSessionId(), filter.getContentType()));
        assertEquals(values.keySet(), filter.getProperties().keySet());
        values.forEach((key, value) -> assertEquals(value.toString(), filter.getProperties().get(key).toString(), key));
        assertEquals(List.of("$Default", "correlation", "false", "sql"), names(topic, "s"));
        found.setFilter(new SqlRuleFilter("n > 6"));
        admin.updateRule(topic, "s", found);
        found = admin.getRule(topic, "s", "correlation");
        assertEquals("n > 6", ((SqlRuleFilter) found.getFilter()).getSqlExpression());
        admin.deleteRule(topic, "s", "correlation");
        assertThrows(ResourceNotFoundException.class, () -> admin.getRule(topic, "s", "correlation"));
        CreateRuleOptions bad = new CreateRuleOptions(new SqlRuleFilter("n >"));
        assertThrows(HttpResponseException.class, () -> admin.createRule(topic, "bad", "s", bad));
        admin.deleteTopic(topic);
    }

    private List<String> names(String topic, String subscription) {
        return admin.listRules(topic, subscription).stream().map(RuleProperties::getName).toList();
    }

    @Test
    void listsHaveEveryNameOnce() {
        List<String> names = new ArrayList<>(IntStream.range(0, 120).mapToObj(n -> fresh("many")).toList());
        Collections.sort(names);
        names.forEach(admin::createQueue);
        List<String> listed = admin.listQueues().stream().map(QueueProperties::getName).toList();
        assertEquals(names, listed.stream().filter(names::contains).toList());
        names.forEach(admin::deleteQueue);
    }

    @Test
    void runtimePropertiesAreThoseOfTheMoment() {
        String name = fresh("queue");
        String topic = fresh("topic");
        admin.createQueue(name);
        QueueRuntimeProperties found = admin.getQueueRuntimeProperties(name);
        assertEquals(0, found.getTotalMessageCount());
        assertEquals(0, found.getActiveMessageCount());
        assertEquals(0, found.getDeadLetterMessageCount());
        assertEquals(0, found.getScheduledMessageCount());
        assertNotNull(found.getUpdatedAt());
        admin.createTopic(topic);
        admin.createSubscription(topic, "s");
        assertEquals(1, admin.getTopicRuntimeProperties(topic).getSubscriptionCount());
        assertEquals(0, admin.getSubscriptionRuntimeProperties(topic, "s").getTotalMessageCount());
        admin.deleteTopic(topic);
        admin.deleteQueue(name);
    }

    @Test
    void ofManyWhoCreateTheSameOneSucceeds() {
        String name = fresh("race");
        long created = IntStream.range(0, 8).parallel().filter(n -> {
            try {
                admin.createQueue(name);
                return true;
            } catch (ResourceExistsException exists) {
                return false;
            }
        }).count();
        assertEquals(1, created);
        admin.deleteQueue(name);
    }

    @Test
    void whatIsMissingOrWrongIsTheErrorForThat() {
        String missing = fresh("missing");
        assertThrows(ResourceNotFoundException.class, () -> admin.getQueue(missing));
        assertThrows(ResourceNotFoundException.class, () -> admin.deleteQueue(missing));
        assertThrows(ResourceNotFoundException.class, () -> admin.createSubscription(missing, "s"));
        CreateQueueOptions wrong = new CreateQueueOptions().setLockDuration(Duration.ofMinutes(6));
        HttpResponseException refused =
                assertThrows(HttpResponseException.class, () -> admin.createQueue(missing, wrong));
        assertEquals(400, refused.getResponse().getStatusCode());
        ServiceBusAdministrationClient stranger =
                Administration.by(CONNECTION.replace("SAS_KEY_VALUE", "WRONG_KEY_VALUE")).buildClient();
        assertThrows(ClientAuthenticationException.class, stranger::getNamespaceProperties);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a~b*", "-*-", "_*_", ".*.", "*--", "*__", "A*z", "a/b*/c-", "-a-/_*_/.c."})
    void aQueueIsCreatedUsedAndListedUnderItsName(String pattern) {
        String name = pattern.replace("*", UUID.randomUUID().toString());
        admin.createQueue(name);
        assertEquals(name, admin.getQueue(name).getName());
        assertTrue(admin.listQueues().stream().anyMatch(queue -> queue.getName().equals(name)));
        try (Queue queue = new Queue(name, CONNECTION)) {
            queue.send(Queue.message("body"));
            assertEquals("body", queue.take(1).get(0).getBody().toString());
        }
        admin.deleteQueue(name);
    }

    @ParameterizedTest
    @CsvSource({"-s-, -r-", "_s_, _r_", ".s., .r.", "a~b, r--", "s--, r__"})
    void aSubscriptionAndItsRuleHaveTheirNames(String subscription, String rule) {
        String topic = "-" + fresh("topic") + "_";
        admin.createTopic(topic);
        admin.createSubscription(topic, subscription);
        admin.createRule(topic, rule, subscription, new CreateRuleOptions(new TrueRuleFilter()));
        assertEquals(subscription, admin.getSubscription(topic, subscription).getSubscriptionName());
        assertEquals(rule, admin.getRule(topic, subscription, rule).getName());
        ServiceBusClientBuilder builder = new ServiceBusClientBuilder().connectionString(CONNECTION);
        try (ServiceBusSenderClient sender = builder.sender().topicName(topic).buildClient();
            ServiceBusReceiverClient receiver =
                builder.receiver().topicName(topic).subscriptionName(subscription).buildClient()) {
            sender.sendMessage(Queue.message("body"));
            assertEquals("body", Queue.receiveOne(receiver).getBody().toString());
        }
        admin.deleteTopic(topic);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a!b", "ä", "a$b", "a,b"})
    void aCharacterThatIsNotAllowedIsRefused(String name) {
        HttpResponseException refused = assertThrows(HttpResponseException.class, () -> admin.createQueue(name));
        assertEquals(400, refused.getResponse().getStatusCode());
        assertTrue(refused.getMessage().contains("contains character(s) that is not allowed by Service Bus."),
            refused::getMessage);
    }

    @Test
    void aLoneNameOfTheSystemThatIsNoneIsNotFound() {
        String name = "$nothing";
        assertFalse(admin.getQueueExists(name));
        assertFalse(admin.getTopicExists(name));
        assertThrows(ResourceNotFoundException.class, () -> admin.getQueue(name));
        assertThrows(ResourceNotFoundException.class, () -> admin.getTopic(name));
        HttpResponseException refused = assertThrows(HttpResponseException.class, () -> admin.createQueue(name));
        assertEquals(400, refused.getResponse().getStatusCode());
    }

    @Test
    void theNamespaceSaysWhatItIs() {
        NamespaceProperties found = admin.getNamespaceProperties();
        assertFalse(found.getName().isEmpty());
        assertEquals("Premium", found.getMessagingSku().toString());
    }
}
