package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The rule manager: rules are listed, created and deleted over AMQP, and count from the next message on. */
class RulesTest {
    private VirtualBroker broker;
    private Subscription subscription;
    private ServiceBusRuleManagerClient manager;

    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker("topics.json");
        subscription = new Subscription(broker, "managed", "rules");
        manager = subscription.builder().ruleManager().topicName("managed").subscriptionName("rules").buildClient();
    }

    @AfterEach
    void stop() {
        manager.close();
        broker.close();
    }

    private List<RuleProperties> rules() {
        return manager.listRules().stream().toList();
    }

    private static CreateRuleOptions sql(String expression) {
        return new CreateRuleOptions(new SqlRuleFilter(expression));
    }

    private static CreateRuleOptions red() {
        CorrelationRuleFilter filter = new CorrelationRuleFilter().setLabel("red").setContentType("text/plain");
        filter.getProperties().put("shade", 3);
        return new CreateRuleOptions(filter);
    }

    private static ServiceBusMessage red(int shade) {
        return Subscription.message("red", Map.of("shade", shade)).setContentType("text/plain");
    }

    @Test
    void rulesComeBackAsTheyWereCreated() {
        assertInstanceOf(TrueRuleFilter.class, rules().get(0).getFilter());
        manager.deleteRule("$Default");
        manager.createRule("big", sql("amount > 100").setAction(new SqlRuleAction("SET seen = TRUE")));
        manager.createRule("red", red());
        List<RuleProperties> rules = rules();
        assertEquals(List.of("big", "red"), rules.stream().map(RuleProperties::getName).toList());
        assertEquals(new SqlRuleFilter("amount > 100").getSqlExpression(),
            assertInstanceOf(SqlRuleFilter.class, rules.get(0).getFilter()).getSqlExpression());
        assertEquals("SET seen = TRUE",
            assertInstanceOf(SqlRuleAction.class, rules.get(0).getAction()).getSqlExpression());
        CorrelationRuleFilter filter = assertInstanceOf(CorrelationRuleFilter.class, rules.get(1).getFilter());
        assertEquals(List.of("red", "text/plain"), List.of(filter.getLabel(), filter.getContentType()));
        // The SDK shows every value as text.
        assertEquals(Map.of("shade", "3"), filter.getProperties());
    }

    @Test
    void rulesAreManagedWhileMessagesArePublished() {
        manager.deleteRule("$Default");
        manager.createRule("red", red());
        ServiceBusMessage wanted = red(3);
        subscription.publish(red(4), wanted);
        assertEquals(sentIds(List.of(wanted)), receivedIds(subscription.take(1)));

        manager.deleteRule("red");
        manager.createRule("big", sql("amount > 100").setAction(new SqlRuleAction("SET seen = TRUE")));
        ServiceBusMessage big = Subscription.message("red", Map.of("amount", 101));
        subscription.publish(red(3), big);
        ServiceBusReceivedMessage seen = subscription.take();
        assertEquals(big.getMessageId(), seen.getMessageId());
        assertEquals(true, seen.getApplicationProperties().get("seen"));
        assertTrue(subscription.peek().isEmpty());
    }

    @Test
    void aRuleThatExistsIsNotCreatedAgain() {
        manager.createRule("big", sql("amount > 100"));
        assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_ALREADY_EXISTS,
            () -> manager.createRule("BIG", sql("1 = 1")));
    }

    @Test
    void aRuleThatIsNotThereIsNotDeleted() {
        assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> manager.deleteRule("none"));
    }

    @Test
    void aBadExpressionIsRefusedAndTheRulesStay() {
        for (CreateRuleOptions bad : List.of(sql("amount >"),
                sql("1 = 1").setAction(new SqlRuleAction("SET priority =")))) {
            RuntimeException refused = assertThrows(RuntimeException.class, () -> manager.createRule("bad", bad));
            assertTrue(refused.getMessage().contains("at character"), refused::getMessage);
        }
        assertEquals(List.of("$Default"), rules().stream().map(RuleProperties::getName).toList());
    }

    private static void assertRefused(ServiceBusFailureReason reason, Runnable operation) {
        assertEquals(reason, assertThrows(ServiceBusException.class, operation::run).getReason());
    }
}
