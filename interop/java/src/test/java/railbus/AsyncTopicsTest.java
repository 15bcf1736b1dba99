package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.message;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The asynchronous clients with topics: copies, dead letters and sessions of subscriptions. */
class AsyncTopicsTest extends AsyncClients {
    private static final String TOPIC = "events";

    @Override
    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker("topics.json");
    }

    private void publish(ServiceBusMessage... messages) {
        ServiceBusSenderAsyncClient sender = open(builder().sender().topicName(TOPIC).buildAsyncClient());
        sender.sendMessages(List.of(messages)).block(PATIENCE);
    }

    private static ServiceBusMessage order(String body, String colour, int amount) {
        ServiceBusMessage made = message(body).setSubject("order");
        made.getApplicationProperties().putAll(Map.of("colour", colour, "amount", amount));
        return made;
    }

    private List<String> take(String subscription, SubQueue subQueue, int count) {
        return bodies(open(builder().receiver().topicName(TOPIC).subscriptionName(subscription).subQueue(subQueue)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildAsyncClient()), count);
    }

    private static List<String> bodies(ServiceBusReceiverAsyncClient receiver, int count) {
        return receiver.receiveMessages().take(count).map(one -> one.getBody().toString()).collectList().block(PATIENCE);
    }

    @Test
    void everySubscriptionThatSelectsAMessageGetsItsCopy() {
        publish(order("small", "red", 5), order("big", "blue", 500));
        assertEquals(List.of("small", "big"), take("all", SubQueue.NONE, 2));
        assertEquals(List.of("small"), take("red", SubQueue.NONE, 1));
        assertEquals(List.of("big"), take("big", SubQueue.NONE, 1));
    }

    @Test
    void deadLettersAreThoseOfOneSubscription() {
        publish(order("poison", "red", 5));
        ServiceBusReceiverAsyncClient receiver = open(builder().receiver().topicName(TOPIC).subscriptionName("red")
            .disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient());
        ServiceBusReceivedMessage poison = next(receiver);
        receiver.deadLetter(poison).block(PATIENCE);
        assertEquals(List.of("poison"), take("red", SubQueue.DEAD_LETTER_QUEUE, 1));
        assertEquals(List.of("poison"), take("all", SubQueue.NONE, 1));
    }

    @Test
    void sessionsOfASubscriptionAreReceivedInOrder() {
        publish(message("0").setSessionId("s"), message("1").setSessionId("s"), message("2").setSessionId("s"));
        ServiceBusReceiverAsyncClient holder = open(open(builder().sessionReceiver().topicName(TOPIC)
            .subscriptionName("sessions").maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient())
            .acceptSession("s").block(PATIENCE));
        assertEquals(List.of("0", "1", "2"), bodies(holder, 3));
    }
}
