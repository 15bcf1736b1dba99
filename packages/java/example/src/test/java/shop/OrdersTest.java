package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.models.SubQueue;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import railbus.junit.RailbusExtension;

/** Tests of a program that uses Azure Service Bus, without it. Each has a broker of its own. */
class OrdersTest {
    @RegisterExtension
    final RailbusExtension railbus = new RailbusExtension().entities(Path.of("Config.json"));

    @Test
    void anOrderArrives() {
        send("one espresso");
        assertEquals(List.of("one espresso"), receive(SubQueue.NONE));
    }

    @Test
    void anOrderThatStaysForADayIsADeadLetter() {
        send("one espresso");
        railbus.broker().advance(Duration.ofDays(1));
        assertEquals(List.of("one espresso"), receive(SubQueue.DEAD_LETTER_QUEUE));
        try (var receiver = client().receiver().queueName("orders").buildClient()) {
            assertNull(receiver.peekMessage());
        }
    }

    private ServiceBusClientBuilder client() {
        return new ServiceBusClientBuilder().connectionString(railbus.connectionString());
    }

    private void send(String body) {
        try (var sender = client().sender().queueName("orders").buildClient()) {
            sender.sendMessage(new ServiceBusMessage(body));
        }
    }

    /** The bodies of the messages that are there, which are completed. */
    private List<String> receive(SubQueue subQueue) {
        var receivers = client().receiver().queueName("orders").subQueue(subQueue).prefetchCount(0);
        try (var receiver = receivers.buildClient()) {
            var messages = receiver.receiveMessages(1, Duration.ofSeconds(10)).stream().toList();
            messages.forEach(receiver::complete);
            return messages.stream().map(message -> message.getBody().toString()).toList();
        }
    }
}
