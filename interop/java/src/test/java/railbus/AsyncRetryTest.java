package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.message;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The asynchronous clients with delayed retry, as a message's receiver or its queue's retry-backoff says. */
class AsyncRetryTest extends AsyncClients {
    @Override
    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker("retry.json");
    }

    @ParameterizedTest
    @ValueSource(strings = {"x-opt-delivery-delay", "x-opt-delivery-time"})
    void anAbandonedMessageWaitsAsItsReceiverSays(String key) throws Exception {
        broker.freeze();
        Queue orders = queue("orders");
        orders.send(message("failing"), message("behind"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage first = next(receiver);
        Object time = key.equals("x-opt-delivery-delay")
            ? 60_000
            : first.getEnqueuedTime().plusMinutes(1).toInstant().toEpochMilli();
        receiver.abandon(first, new AbandonOptions().setPropertiesToModify(Map.of(key, time))).block(PATIENCE);
        assertEquals(ServiceBusMessageState.SCHEDULED, orders.peek().get(0).getState());
        ServiceBusReceivedMessage other = next(receiver);
        assertEquals("behind", other.getBody().toString());
        receiver.complete(other).block(PATIENCE);
        broker.advance("PT1M");
        ServiceBusReceivedMessage again = next(receiver);
        assertEquals(first.getMessageId(), again.getMessageId());
        assertEquals(first.getSequenceNumber(), again.getSequenceNumber());
        assertEquals(1, again.getDeliveryCount());
        assertEquals(Map.of(), again.getApplicationProperties());
        receiver.complete(again).block(PATIENCE);
        orders.assertEmpty();
    }

    @Test
    void theWaitGrowsWithEachFailedDelivery() throws Exception {
        broker.freeze();
        Queue backoff = queue("backoff");
        backoff.send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("backoff");
        for (String wait : List.of("PT10S", "PT30S", "PT1M")) {
            receiver.abandon(next(receiver)).block(PATIENCE);
            assertEquals(ServiceBusMessageState.SCHEDULED, backoff.peek().get(0).getState());
            broker.advance(wait);
        }
        ServiceBusReceivedMessage last = next(receiver);
        assertEquals(3, last.getDeliveryCount());
        receiver.complete(last).block(PATIENCE);
        backoff.assertEmpty();
    }
}
