package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.message;
import static railbus.Queue.receive;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Topics: subscriptions get copies of what they select, with dead letters and sessions of their own. */
class TopicsTest extends OwnBroker {
    private static final String TOPIC = "events";

    TopicsTest() {
        super("topics.json");
    }

    private void publish(ServiceBusMessage... messages) {
        try (ServiceBusSenderClient sender = builder().sender().topicName(TOPIC).buildClient()) {
            for (ServiceBusMessage one : messages) {
                sender.sendMessage(one);
            }
        }
    }

    private static ServiceBusMessage order(String body, String colour, int amount) {
        ServiceBusMessage made = message(body).setSubject("order");
        made.getApplicationProperties().putAll(Map.of("colour", colour, "amount", amount));
        return made;
    }

    private List<String> take(String subscription, SubQueue subQueue, int count) {
        try (ServiceBusReceiverClient receiver = builder().receiver().topicName(TOPIC).subscriptionName(subscription)
                .subQueue(subQueue).receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
            return bodies(receive(receiver, count));
        }
    }

    private static List<String> bodies(List<ServiceBusReceivedMessage> received) {
        return received.stream().map(one -> one.getBody().toString()).toList();
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
        try (ServiceBusReceiverClient receiver = builder().receiver().topicName(TOPIC).subscriptionName("red")
                .maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
            receiver.deadLetter(Queue.receiveOne(receiver));
        }
        assertEquals(List.of("poison"), take("red", SubQueue.DEAD_LETTER_QUEUE, 1));
        assertEquals(List.of("poison"), take("all", SubQueue.NONE, 1));
    }

    @Test
    void sessionsOfASubscriptionAreReceivedInOrder() {
        publish(message("0").setSessionId("s"), message("1").setSessionId("s"), message("2").setSessionId("s"));
        try (ServiceBusSessionReceiverClient sessions = builder().sessionReceiver().topicName(TOPIC)
                .subscriptionName("sessions").maxAutoLockRenewDuration(Duration.ZERO).buildClient();
                ServiceBusReceiverClient receiver = sessions.acceptSession("s")) {
            assertEquals(List.of("0", "1", "2"), bodies(receive(receiver, 3)));
        }
    }
}
