package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import railbus.Broker.OwnQueue;

/** {@code JMSXGroupID} and {@code JMSXGroupSeq}: the group of JMS is the session of the broker. */
class GroupTest {
    private static void send(JMSContext context, Queue queue, String group, int place) {
        context.createProducer()
                .setProperty("JMSXGroupID", group)
                .setProperty("JMSXGroupSeq", place)
                .send(queue, group + " " + place);
    }

    @Test
    void aMessageArrivesWithItsGroupAndItsPlaceInIt() throws JMSException {
        try (OwnQueue own = new OwnQueue(); JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            send(context, queue, "red", 1);
            send(context, queue, "Blue", 7);
            context.createProducer().send(queue, "alone");
            JMSConsumer consumer = context.createConsumer(queue);
            Message red = Client.next(consumer);
            assertEquals("red", red.getStringProperty("JMSXGroupID"));
            assertEquals(1, red.getIntProperty("JMSXGroupSeq"));
            Message blue = Client.next(consumer);
            assertEquals("Blue", blue.getStringProperty("JMSXGroupID"));
            assertEquals(7, blue.getIntProperty("JMSXGroupSeq"));
            assertNull(Client.next(consumer).getStringProperty("JMSXGroupID"));
        }
    }

    @Test
    void aGroupIsSelected() {
        try (OwnQueue own = new OwnQueue(); JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            for (int place = 1; place <= 3; place++) {
                send(context, queue, "red", place);
                send(context, queue, "blue", place);
            }
            String selector = "JMSXGroupID = 'blue' AND JMSXGroupSeq > 1";
            try (JMSConsumer blue = context.createConsumer(queue, selector)) {
                assertEquals("blue 2", Client.text(blue));
                assertEquals("blue 3", Client.text(blue));
                assertNull(blue.receiveNoWait());
            }
            JMSConsumer rest = context.createConsumer(queue);
            for (String text : List.of("red 1", "blue 1", "red 2", "red 3")) {
                assertEquals(text, Client.text(rest));
            }
        }
    }

    @Test
    void aGroupIsASessionOfAQueueThatRequiresThem() throws JMSException {
        try (OwnQueue own = new OwnQueue("\"requires-session\": true");
                JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            send(context, queue, "red", 1);
            send(context, queue, "blue", 1);
            assertEquals(
                    List.of("red", "blue"),
                    own.messages().stream().map(message -> message.get("session-id")).toList());
            try (QueueBrowser browser = context.createBrowser(queue)) {
                List<?> shown = Collections.list(browser.getEnumeration());
                assertEquals(2, shown.size());
                assertEquals("blue", ((Message) shown.get(1)).getStringProperty("JMSXGroupID"));
            }
        }
    }

    @Test
    void aQueueThatRequiresSessionsRefusesMessagesAndConsumersWithoutOne() {
        try (OwnQueue own = new OwnQueue("\"requires-session\": true");
                JMSContext context = Client.context(null)) {
            Queue queue = context.createQueue(own.name);
            JMSRuntimeException message =
                    assertThrows(JMSRuntimeException.class, () -> context.createProducer().send(queue, "alone"));
            assertTrue(message.getMessage().contains("SessionId was not set"), message::toString);
            JMSRuntimeException consumer =
                    assertThrows(JMSRuntimeException.class, () -> context.createConsumer(queue));
            assertTrue(consumer.getMessage().contains("requires sessions"), consumer::toString);
        }
    }
}
