package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.receiveOne;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Subscriptions: actions and correlation filters, a copy's own life, forwarding, and what waits at the topic. */
class SubscriptionsTest extends OwnBroker {
    SubscriptionsTest() {
        super("topics.json");
    }

    private Subscription subscription(String name) {
        return new Subscription(broker, "events", name);
    }

    @Test
    void anActionChangesTheCopyOfItsSubscriptionAlone() {
        ServiceBusMessage sent = Subscription.message("order", Map.of("amount", 500));
        subscription("big").publish(sent);
        ServiceBusReceivedMessage changed = subscription("big").take();
        assertEquals(sent.getMessageId(), changed.getMessageId());
        assertEquals("big order", changed.getSubject());
        assertEquals(Map.of("amount", 500, "priority", "high", "RuleName", "amount"),
            changed.getApplicationProperties());
        ServiceBusReceivedMessage unchanged = subscription("all").take();
        assertEquals("order", unchanged.getSubject());
        assertNull(unchanged.getApplicationProperties().get("priority"));
    }

    @Test
    void aCorrelationFilterSelectsByAllThatItNames() {
        ServiceBusMessage wanted = Subscription.message("order", Map.of("colour", "red"));
        subscription("red").publish(Subscription.message("order", Map.of("colour", "blue")),
            Subscription.message("offer", Map.of("colour", "red")), Subscription.message("order", Map.of()), wanted);
        assertEquals(sentIds(List.of(wanted)), receivedIds(subscription("red").peek()));
        assertEquals(4, subscription("all").peek().size());
    }

    @Test
    void aDeadLetterTellsItsReasonAndLeavesOtherCopiesAlone() {
        ServiceBusMessage poison = Subscription.message("order", Map.of("colour", "red"));
        subscription("red").publish(poison);
        try (ServiceBusReceiverClient receiver = subscription("red").receiver()) {
            receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions()
                .setDeadLetterReason("bad").setDeadLetterErrorDescription("very"));
        }
        ServiceBusReceivedMessage dead = subscription("red").takeDead();
        assertEquals(List.of("bad", "very"),
            List.of(dead.getDeadLetterReason(), dead.getDeadLetterErrorDescription()));
        assertEquals(poison.getMessageId(), subscription("all").take().getMessageId());
    }

    @Test
    void aCopyIsLockedAbandonedAndDeadLetteredLikeAQueuesMessage() {
        ServiceBusMessage sent = Queue.message("again");
        subscription("all").publish(sent);
        try (ServiceBusReceiverClient receiver = subscription("all").receiver()) {
            for (long before = 0; before < 2; before++) {
                ServiceBusReceivedMessage received = receiveOne(receiver);
                assertEquals(before, received.getDeliveryCount());
                receiver.abandon(received);
            }
        }
        ServiceBusReceivedMessage dead = subscription("all").takeDead();
        assertEquals(sent.getMessageId(), dead.getMessageId());
        assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
    }

    @Test
    void aSubscriptionForwardsToAQueue() {
        ServiceBusMessage kept = Subscription.message("archived", Map.of());
        subscription("forwarding").publish(kept);
        try (Queue archive = new Queue("archive", broker.connectionString)) {
            assertEquals(sentIds(List.of(kept)), receivedIds(archive.take(1)));
        }
    }

    @Test
    void whatIsScheduledWaitsAtTheTopic() throws Exception {
        ServiceBusMessage kept = Queue.message("kept");
        OffsetDateTime later = OffsetDateTime.now().plusHours(1);
        try (ServiceBusSenderClient sender = subscription("all").sender()) {
            sender.scheduleMessage(kept, later);
            sender.cancelScheduledMessage(sender.scheduleMessage(Queue.message("cancelled"), later));
            assertTrue(subscription("all").peek().isEmpty());
            broker.advance("PT61M");
        }
        assertEquals(sentIds(List.of(kept)), receivedIds(subscription("all").peek()));
    }
}
