package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Client.assertSays;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Shared subscriptions with a selector, which all their consumers name alike. */
class SharedSubscriptionTest {
    private static final String GOLD = "kind = 'gold'";
    private static final String SILVER = "kind = 'silver'";

    /** The kinds of shared subscriptions. Those without a client id are shared by all clients without one. */
    enum Kind {
        DURABLE("sharer", true),
        DURABLE_OF_ALL(null, true),
        FLEETING("sharer", false),
        FLEETING_OF_ALL(null, false);

        final String clientId;
        final boolean durable;

        Kind(String clientId, boolean durable) {
            this.clientId = clientId;
            this.durable = durable;
        }

        JMSContext context() {
            return Client.prefetching(clientId, 0).createContext();
        }

        /** A consumer with a selector, or with none. */
        JMSConsumer consumer(JMSContext context, String selector) {
            Topic topic = context.createTopic("prices");
            if (selector == null) {
                return durable
                        ? context.createSharedDurableConsumer(topic, "selected")
                        : context.createSharedConsumer(topic, "selected");
            }
            return durable
                    ? context.createSharedDurableConsumer(topic, "selected", selector)
                    : context.createSharedConsumer(topic, "selected", selector);
        }

        /** The name that the broker gives to the subscription. */
        String entity() {
            return "selected$" + (clientId == null ? "" : clientId) + (durable ? "$D" : "$ND");
        }

        void end(JMSContext context, JMSConsumer... consumers) {
            for (JMSConsumer consumer : consumers) {
                consumer.close();
            }
            if (durable) {
                context.unsubscribe("selected");
            }
        }
    }

    private static void publish(JMSContext context, String kind, String text) {
        context.createProducer().setProperty("kind", kind).send(context.createTopic("prices"), text);
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void consumersShareWhatTheSelectorSelects(Kind kind) {
        try (JMSContext one = kind.context(); JMSContext two = kind.context()) {
            JMSConsumer first = kind.consumer(one, GOLD);
            JMSConsumer second = kind.consumer(two, GOLD);
            for (int n = 0; n < 10; n++) {
                publish(one, "silver", "silver " + n);
                publish(one, "gold", "gold " + n);
            }
            // Both ask for one message at a time, so they have them in turn.
            List<String> received = new ArrayList<>();
            for (int n = 0; n < 5; n++) {
                received.add(Client.text(first));
                received.add(Client.text(second));
            }
            assertEquals(IntStream.range(0, 10).mapToObj(n -> "gold " + n).toList(), received);
            assertNull(first.receiveNoWait());
            assertNull(second.receiveNoWait());
            kind.end(one, first, second);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void theSelectorSeesTheHeadersOfWhatIsPublished(Kind kind) {
        try (JMSContext context = kind.context()) {
            Topic topic = context.createTopic("prices");
            JMSConsumer consumer = kind.consumer(
                    context,
                    "JMSPriority > 5 AND JMSType LIKE 'r_d%' AND JMSDeliveryMode = 'PERSISTENT'"
                            + " AND (JMSCorrelationID IS NULL OR JMSXGroupID IN ('a', 'b'))");
            context.createProducer().setPriority(6).setJMSType("red").send(topic, "selected by type");
            context.createProducer().setPriority(5).setJMSType("red").send(topic, "too low");
            context.createProducer().setPriority(6).setJMSType("green").send(topic, "of another type");
            context.createProducer()
                    .setPriority(6)
                    .setJMSType("ruddy")
                    .setJMSCorrelationID("some")
                    .send(topic, "without its group");
            context.createProducer()
                    .setPriority(9)
                    .setJMSType("ridiculous")
                    .setJMSCorrelationID("some")
                    .setProperty("JMSXGroupID", "b")
                    .send(topic, "of a group");
            assertEquals("selected by type", Client.text(consumer));
            assertEquals("of a group", Client.text(consumer));
            assertNull(consumer.receiveNoWait());
            kind.end(context, consumer);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anotherSelectorIsRefusedWhileTheSubscriptionHasAConsumer(Kind kind) {
        try (JMSContext one = kind.context(); JMSContext two = kind.context()) {
            JMSConsumer consumer = kind.consumer(one, GOLD);
            for (String other : new String[] {SILVER, null}) {
                assertInUse(kind, () -> kind.consumer(two, other));
            }
            publish(two, "silver", "not selected");
            publish(two, "gold", "still selected");
            assertEquals("still selected", Client.text(consumer));
            assertNull(consumer.receiveNoWait());
            // The refused one may share after all.
            JMSConsumer second = kind.consumer(two, GOLD);
            publish(one, "gold", "for either");
            assertEquals("for either", Client.text(second));
            kind.end(one, consumer, second);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anotherSelectorIsAnotherSubscriptionOnceTheConsumersHaveGone(Kind kind) {
        try (JMSContext context = kind.context()) {
            kind.consumer(context, GOLD).close();
            publish(context, "gold", "stored at most by the old one");
            JMSConsumer consumer = kind.consumer(context, SILVER);
            publish(context, "gold", "not selected any more");
            publish(context, "silver", "selected now");
            assertEquals("selected now", Client.text(consumer));
            assertNull(consumer.receiveNoWait());
            kind.end(context, consumer);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void onlyADurableOneStoresWhatItSelectsWhileItHasNoConsumer(Kind kind) {
        try (JMSContext context = kind.context()) {
            kind.consumer(context, GOLD).close();
            publish(context, "silver", "never selected");
            publish(context, "gold", "stored");
            JMSConsumer consumer = kind.consumer(context, GOLD);
            publish(context, "gold", "later");
            if (kind.durable) {
                assertEquals("stored", Client.text(consumer));
            }
            assertEquals("later", Client.text(consumer));
            assertNull(consumer.receiveNoWait());
            kind.end(context, consumer);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aBadSelectorIsRefusedAndMakesNoSubscription(Kind kind) {
        try (JMSContext context = kind.context()) {
            JMSConsumer consumer = kind.consumer(context, GOLD);
            assertThrows(JMSRuntimeException.class, () -> kind.consumer(context, "kind ="));
            kind.end(context, consumer);
            if (kind.durable) {
                assertThrows(JMSRuntimeException.class, () -> kind.consumer(context, "kind ="));
                assertThrows(JMSRuntimeException.class, () -> context.unsubscribe("selected"));
            }
        }
    }

    /** Of one name and one client id there is a durable subscription of one kind, whether it has consumers or not. */
    @Test
    void aDurableSubscriptionThatIsSharedHasNoUnsharedConsumer() {
        Kind kind = Kind.DURABLE;
        try (JMSContext one = kind.context(); JMSContext two = kind.context()) {
            Topic topic = one.createTopic("prices");
            JMSConsumer shared = kind.consumer(one, GOLD);
            assertInUse(kind, () -> two.createDurableConsumer(topic, "selected", GOLD, false));
            shared.close();
            assertInUse(kind, () -> two.createDurableConsumer(topic, "selected", GOLD, false));
            publish(one, "gold", "stored");
            JMSConsumer again = kind.consumer(two, GOLD);
            assertEquals("stored", Client.text(again));
            kind.end(one, again);
            JMSConsumer unshared = two.createDurableConsumer(topic, "selected", GOLD, false);
            assertInUse(kind, () -> kind.consumer(one, GOLD));
            unshared.close();
            assertInUse(kind, () -> kind.consumer(one, GOLD));
            two.unsubscribe("selected");
        }
    }

    private static void assertInUse(Kind kind, Executable consumer) {
        JMSRuntimeException refused = assertThrows(JMSRuntimeException.class, consumer);
        assertSays("amqp:not-allowed", refused);
        assertSays(kind.entity(), refused);
    }
}
