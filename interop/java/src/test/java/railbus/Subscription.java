package railbus;

import static railbus.Queue.receive;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** One subscription and its topic, seen through the SDK, with the steps that tests repeat. */
record Subscription(VirtualBroker broker, String topic, String name) {
    ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(broker.connectionString);
    }

    ServiceBusSenderClient sender() {
        return builder().sender().topicName(topic).buildClient();
    }

    ServiceBusReceiverClient receiver() {
        return builder().receiver().topicName(topic).subscriptionName(name)
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
    }

    void publish(ServiceBusMessage... messages) {
        try (ServiceBusSenderClient sender = sender()) {
            sender.sendMessages(List.of(messages));
        }
    }

    ServiceBusReceivedMessage take() {
        return take(1).get(0);
    }

    List<ServiceBusReceivedMessage> take(int count) {
        return take(SubQueue.NONE, count);
    }

    ServiceBusReceivedMessage takeDead() {
        return take(SubQueue.DEAD_LETTER_QUEUE, 1).get(0);
    }

    private List<ServiceBusReceivedMessage> take(SubQueue subQueue, int count) {
        try (ServiceBusReceiverClient receiver = builder().receiver().topicName(topic).subscriptionName(name)
                .subQueue(subQueue).receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
            return receive(receiver, count);
        }
    }

    List<ServiceBusReceivedMessage> peek() {
        try (ServiceBusReceiverClient receiver = receiver()) {
            return receiver.peekMessages(250, 1).stream().toList();
        }
    }

    static ServiceBusMessage message(String subject, Map<String, Object> properties) {
        ServiceBusMessage made = Queue.message("body").setSubject(subject);
        made.getApplicationProperties().putAll(properties);
        return made;
    }
}
