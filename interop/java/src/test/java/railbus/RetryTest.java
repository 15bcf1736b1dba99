package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Delayed retry: a message waits after a failed delivery, as its receiver or its queue's retry-backoff says. */
class RetryTest {
    @Test
    void anAbandonedMessageWaitsAsItsReceiverSays() throws Exception {
        checkWait(received -> Map.of("x-opt-delivery-delay", 60_000));
        checkWait(received -> {
            long minuteLater = received.getEnqueuedTime().plusMinutes(1).toInstant().toEpochMilli();
            return Map.of("x-opt-delivery-time", minuteLater);
        });
    }

    private static void checkWait(Function<ServiceBusReceivedMessage, Map<String, Object>> wait) throws Exception {
        try (VirtualBroker broker = new VirtualBroker("retry.json");
             Queue queue = new Queue("orders", broker.connectionString)) {
            broker.freeze();
            ServiceBusMessage failing = message("failing");
            ServiceBusMessage behind = message("behind");
            queue.send(failing, behind);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage first = receiveOne(receiver);
            receiver.abandon(first, new AbandonOptions().setPropertiesToModify(wait.apply(first)));
            assertEquals(ServiceBusMessageState.SCHEDULED, queue.peek().get(0).getState());
            ServiceBusReceivedMessage other = receiveOne(receiver);
            assertEquals(behind.getMessageId(), other.getMessageId());
            receiver.complete(other);
            broker.advance("PT1M");
            ServiceBusReceivedMessage again = receiveOne(receiver);
            assertEquals(failing.getMessageId(), again.getMessageId());
            assertEquals(first.getSequenceNumber(), again.getSequenceNumber());
            assertEquals(1, again.getDeliveryCount());
            assertEquals(Map.of(), again.getApplicationProperties());
            receiver.complete(again);
            queue.assertEmpty();
        }
    }

    @Test
    void theWaitGrowsWithEachFailedDelivery() throws Exception {
        try (VirtualBroker broker = new VirtualBroker("retry.json");
             Queue queue = new Queue("backoff", broker.connectionString)) {
            broker.freeze();
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            for (String wait : List.of("PT10S", "PT30S", "PT1M")) {
                receiver.abandon(receiveOne(receiver));
                assertEquals(ServiceBusMessageState.SCHEDULED, queue.peek().get(0).getState());
                broker.advance(wait);
            }
            ServiceBusReceivedMessage last = receiveOne(receiver);
            assertEquals(3, last.getDeliveryCount());
            receiver.complete(last);
            queue.assertEmpty();
        }
    }
}
