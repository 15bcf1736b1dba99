package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.models.SubQueue;
import java.io.IOException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The asynchronous clients: the rule manager, filters and actions, forwarding, and what waits at the topic. */
class AsyncSubscriptionsTest extends AsyncClients {
    @Override
    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker("topics.json");
    }

    private ServiceBusSenderAsyncClient topic(String topic) {
        return open(builder().sender().topicName(topic).buildAsyncClient());
    }

    private void publish(ServiceBusMessage... messages) {
        topic("events").sendMessages(List.of(messages)).block(PATIENCE);
    }

    private ServiceBusReceiverAsyncClient subscription(String topic, String name, SubQueue subQueue) {
        return open(builder().receiver().topicName(topic).subscriptionName(name).subQueue(subQueue)
            .disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient());
    }

    private ServiceBusReceivedMessage take(String topic, String name) {
        ServiceBusReceiverAsyncClient receiver = subscription(topic, name, SubQueue.NONE);
        return receiver.receiveMessages().concatMap(one -> receiver.complete(one).thenReturn(one)).next()
            .block(PATIENCE);
    }

    private List<ServiceBusReceivedMessage> peek(String name) {
        return subscription("events", name, SubQueue.NONE).peekMessages(100).collectList().block(PATIENCE);
    }

    @Test
    void rulesAreManagedWhileMessagesArePublished() {
        ServiceBusRuleManagerAsyncClient manager =
            open(builder().ruleManager().topicName("managed").subscriptionName("rules").buildAsyncClient());
        CorrelationRuleFilter red = new CorrelationRuleFilter().setLabel("red");
        red.getProperties().put("shade", 3);
        manager.deleteRule("$Default")
            .then(manager.createRule("big", new CreateRuleOptions(new SqlRuleFilter("amount > 100"))
                .setAction(new SqlRuleAction("SET seen = TRUE"))))
            .then(manager.createRule("red", new CreateRuleOptions(red))).block(PATIENCE);
        assertEquals(List.of("big", "red"),
            manager.listRules().map(RuleProperties::getName).collectList().block(PATIENCE));

        ServiceBusSenderAsyncClient sender = topic("managed");
        ServiceBusMessage wanted = Subscription.message("red", Map.of("shade", 3));
        sender.sendMessages(List.of(Subscription.message("red", Map.of("shade", 4)), wanted)).block(PATIENCE);
        assertEquals(wanted.getMessageId(), take("managed", "rules").getMessageId());

        ServiceBusMessage big = Subscription.message("red", Map.of("shade", 3, "amount", 101));
        manager.deleteRule("red").then(sender.sendMessages(List.of(wanted, big))).block(PATIENCE);
        ServiceBusReceivedMessage seen = take("managed", "rules");
        assertEquals(big.getMessageId(), seen.getMessageId());
        assertEquals(true, seen.getApplicationProperties().get("seen"));
    }

    @Test
    void aRuleIsRefusedThatExistsOrDoesNotParseAndOneThatIsNotThereIsNotDeleted() {
        ServiceBusRuleManagerAsyncClient manager =
            open(builder().ruleManager().topicName("managed").subscriptionName("rules").buildAsyncClient());
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_ALREADY_EXISTS,
            reasonOf(manager.createRule("$default", new CreateRuleOptions(new SqlRuleFilter("1 = 1")))));
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, reasonOf(manager.deleteRule("none")));
        RuntimeException refused = assertThrows(RuntimeException.class, () -> manager
            .createRule("bad", new CreateRuleOptions(new SqlRuleFilter("amount >"))).block(PATIENCE));
        assertTrue(refused.getMessage().contains("at character"), refused::getMessage);
    }

    @Test
    void anActionChangesTheCopyOfItsSubscriptionAlone() {
        publish(Subscription.message("order", Map.of("amount", 500)));
        ServiceBusReceivedMessage changed = take("events", "big");
        assertEquals("big order", changed.getSubject());
        assertEquals(Map.of("amount", 500, "priority", "high", "RuleName", "amount"),
            changed.getApplicationProperties());
        ServiceBusReceivedMessage unchanged = take("events", "all");
        assertEquals("order", unchanged.getSubject());
        assertEquals(Map.of("amount", 500), unchanged.getApplicationProperties());
    }

    @Test
    void aCorrelationFilterSelectsByAllThatItNames() {
        ServiceBusMessage wanted = Subscription.message("order", Map.of("colour", "red"));
        publish(Subscription.message("order", Map.of("colour", "blue")),
            Subscription.message("offer", Map.of("colour", "red")), Subscription.message("order", Map.of()), wanted);
        assertEquals(sentIds(List.of(wanted)), receivedIds(peek("red")));
        assertEquals(4, peek("all").size());
    }

    @Test
    void aCopyIsLockedAbandonedAndDeadLetteredLikeAQueuesMessage() {
        ServiceBusMessage sent = Queue.message("again");
        publish(sent);
        ServiceBusReceiverAsyncClient receiver = subscription("events", "all", SubQueue.NONE);
        // A stream that has enough closes its link, so it counts what is settled.
        receiver.receiveMessages().concatMap(one -> receiver.abandon(one).thenReturn(one)).take(2).then()
            .block(PATIENCE);
        ServiceBusReceivedMessage dead = next(subscription("events", "all", SubQueue.DEAD_LETTER_QUEUE));
        assertEquals(sent.getMessageId(), dead.getMessageId());
        assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
    }

    @Test
    void aSubscriptionForwardsToAQueue() {
        ServiceBusMessage kept = Subscription.message("archived", Map.of());
        publish(kept);
        assertEquals(sentIds(List.of(kept)), receivedIds(queue("archive").take(1)));
    }

    @Test
    void whatIsScheduledWaitsAtTheTopic() throws Exception {
        ServiceBusSenderAsyncClient sender = topic("events");
        ServiceBusMessage kept = Queue.message("kept");
        OffsetDateTime later = OffsetDateTime.now().plusHours(1);
        sender.scheduleMessage(kept, later).block(PATIENCE);
        sender.scheduleMessage(Queue.message("cancelled"), later).flatMap(sender::cancelScheduledMessage)
            .block(PATIENCE);
        assertEquals(List.of(), peek("all"));
        broker.advance("PT61M");
        assertEquals(sentIds(List.of(kept)), receivedIds(peek("all")));
    }
}
