package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** The four kinds of subscriptions, and how they end. */
class SubscriptionTest {
    private static void publish(JMSContext context, String... texts) {
        Topic topic = context.createTopic("prices");
        for (String text : texts) {
            context.createProducer().setProperty("kind", text).send(topic, text);
        }
    }

    @Test
    void aDurableSubscriptionKeepsWhatIsPublishedWhileItsConsumerIsAway() {
        try (JMSContext publisher = Client.context(null)) {
            try (JMSContext first = Client.context("keeper")) {
                first.createDurableConsumer(first.createTopic("prices"), "kept").close();
            }
            publish(publisher, "one", "two");
            try (JMSContext again = Client.context("keeper")) {
                JMSConsumer consumer = again.createDurableConsumer(again.createTopic("prices"), "kept");
                assertEquals("one", Client.text(consumer));
                assertEquals("two", Client.text(consumer));
                consumer.close();
                again.unsubscribe("kept");
            }
        }
    }

    @Test
    void anUnsubscribedSubscriptionIsGoneWithItsMessages() {
        try (JMSContext context = Client.context("leaver")) {
            Topic topic = context.createTopic("prices");
            context.createDurableConsumer(topic, "left").close();
            publish(context, "lost");
            context.unsubscribe("left");
            assertThrows(JMSRuntimeException.class, () -> context.unsubscribe("left"));
            JMSConsumer anew = context.createDurableConsumer(topic, "left");
            assertNull(anew.receive(Client.LULL_MS));
            anew.close();
            context.unsubscribe("left");
        }
    }

    @Test
    void aSubscriptionWithAConsumerElsewhereCannotBeUnsubscribed() {
        try (JMSContext one = Client.context("both"); JMSContext two = Client.context("both")) {
            JMSConsumer consumer = one.createDurableConsumer(one.createTopic("prices"), "busy");
            assertThrows(JMSRuntimeException.class, () -> two.unsubscribe("busy"));
            publish(two, "still there");
            assertEquals("still there", Client.text(consumer));
            consumer.close();
            two.unsubscribe("busy");
        }
    }

    @Test
    void aDurableSubscriptionHasOneConsumerUnlessItIsShared() {
        try (JMSContext one = Client.context("single"); JMSContext two = Client.context("single")) {
            Topic topic = one.createTopic("prices");
            JMSConsumer consumer = one.createDurableConsumer(topic, "alone");
            JMSRuntimeException refused =
                    assertThrows(JMSRuntimeException.class, () -> two.createDurableConsumer(topic, "alone"));
            assertEquals(true, refused.getMessage().contains("alone$single$D"), refused::toString);
            consumer.close();
            two.createDurableConsumer(topic, "alone").close();
            two.unsubscribe("alone");
        }
    }

    @Test
    void consumersOfASharedDurableSubscriptionTakeTurns() {
        for (String clientId : new String[] {"sharer", null}) {
            try (JMSContext one = Client.context(clientId); JMSContext two = Client.context(clientId)) {
                Topic topic = one.createTopic("prices");
                JMSConsumer first = one.createSharedDurableConsumer(topic, "shared");
                JMSConsumer second = two.createSharedDurableConsumer(topic, "shared");
                takeTurns(one, first, second);
                first.close();
                second.close();
                one.unsubscribe("shared");
            }
        }
    }

    @Test
    void consumersOfASharedSubscriptionTakeTurnsUntilTheLastHasGone() {
        for (String clientId : new String[] {"sharer", null}) {
            try (JMSContext one = Client.context(clientId); JMSContext two = Client.context(clientId)) {
                Topic topic = one.createTopic("prices");
                JMSConsumer first = one.createSharedConsumer(topic, "fleeting");
                JMSConsumer second = two.createSharedConsumer(topic, "fleeting");
                takeTurns(one, first, second);
                first.close();
                second.close();
                publish(one, "to nobody");
                assertNull(one.createSharedConsumer(topic, "fleeting").receive(Client.LULL_MS));
            }
        }
    }

    /** Each of ten messages comes to one of the consumers. */
    private static void takeTurns(JMSContext publisher, JMSConsumer first, JMSConsumer second) {
        Set<String> sent = new TreeSet<>();
        for (int n = 0; n < 10; n++) {
            sent.add("message " + n);
        }
        publish(publisher, sent.toArray(String[]::new));
        Set<String> received = new TreeSet<>();
        long deadline = System.currentTimeMillis() + Client.PATIENCE_MS;
        int count = 0;
        while (count < sent.size() && System.currentTimeMillis() < deadline) {
            for (JMSConsumer consumer : new JMSConsumer[] {first, second}) {
                String text = consumer.receiveBody(String.class, 50);
                if (text != null) {
                    received.add(text);
                    count++;
                }
            }
        }
        assertEquals(sent, received);
        assertEquals(sent.size(), count);
        assertNull(first.receive(Client.LULL_MS));
        assertNull(second.receive(Client.LULL_MS));
    }

    @Test
    void eachConsumerWithoutASubscriptionNameGetsEverything() {
        try (JMSContext context = Client.context(null)) {
            Topic topic = context.createTopic("prices");
            JMSConsumer one = context.createConsumer(topic);
            JMSConsumer two = context.createConsumer(topic);
            publish(context, "news");
            assertEquals("news", Client.text(one));
            assertEquals("news", Client.text(two));
            one.close();
            publish(context, "more");
            assertEquals("more", Client.text(two));
        }
    }

    @Test
    void aSelectorDecidesWhatASubscriptionGets() {
        try (JMSContext context = Client.context("chooser")) {
            Topic topic = context.createTopic("prices");
            JMSConsumer consumer = context.createDurableConsumer(topic, "chosen", "kind = 'gold'", false);
            publish(context, "silver", "gold");
            assertEquals("gold", Client.text(consumer));
            assertNull(consumer.receive(Client.LULL_MS));
            consumer.close();
            // Another selector is another subscription.
            publish(context, "gold");
            consumer = context.createDurableConsumer(topic, "chosen", "kind = 'silver'", false);
            publish(context, "gold", "silver");
            assertEquals("silver", Client.text(consumer));
            assertNull(consumer.receive(Client.LULL_MS));
            consumer.close();
            context.unsubscribe("chosen");
        }
    }

    @Test
    void noLocalIsIgnored() {
        try (JMSContext context = Client.context("echo")) {
            Topic topic = context.createTopic("prices");
            JMSConsumer consumer = context.createConsumer(topic, null, true);
            publish(context, "own");
            assertEquals("own", Client.text(consumer));
        }
    }

    @Test
    void aSubscriptionMayMoveToAnotherTopic() {
        try (JMSContext context = Client.context("mover")) {
            context.createDurableConsumer(context.createTopic("prices"), "moved").close();
            Topic weather = context.createTopic("weather");
            JMSConsumer consumer = context.createDurableConsumer(weather, "moved");
            publish(context, "price");
            context.createProducer().send(weather, "rain");
            assertEquals("rain", Client.text(consumer));
            consumer.close();
            context.unsubscribe("moved");
        }
    }

    @Test
    void aSubscriptionIsReadAsAQueueByItsPath() {
        try (JMSContext context = Client.context("reader")) {
            JMSConsumer durable = context.createDurableConsumer(context.createTopic("prices"), "read");
            durable.close();
            publish(context, "by path");
            JMSConsumer queue = context.createConsumer(context.createQueue("prices/Subscriptions/read$reader$D"));
            assertEquals("by path", Client.text(queue));
            queue.close();
            context.unsubscribe("read");
        }
    }

    @Test
    void theClassicInterfacesSubscribeToo() throws JMSException {
        try (Connection connection = Client.factory("classic").createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic("prices");
            MessageConsumer durable = session.createDurableSubscriber(topic, "classic");
            MessageConsumer shared = session.createSharedConsumer(topic, "classic");
            MessageProducer producer = session.createProducer(topic);
            producer.send(session.createTextMessage("for both"));
            for (MessageConsumer consumer : new MessageConsumer[] {durable, shared}) {
                assertEquals("for both", consumer.receive(Client.PATIENCE_MS).getBody(String.class));
                consumer.close();
            }
            session.unsubscribe("classic");
        }
    }

    @Test
    void aBadSelectorAndAMissingTopicAreRefused() {
        try (JMSContext context = Client.context("wrong")) {
            Topic topic = context.createTopic("prices");
            assertThrows(JMSRuntimeException.class, () -> context.createConsumer(topic, "kind ="));
            if (!Client.makesEntities()) {
                Topic missing = context.createTopic("nowhere");
                JMSRuntimeException refused =
                        assertThrows(JMSRuntimeException.class, () -> context.createConsumer(missing));
                assertEquals(
                        jakarta.jms.InvalidDestinationRuntimeException.class, refused.getClass(), refused::toString);
            }
        }
    }
}
