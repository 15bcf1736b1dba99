package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** One queue, a client of each dialect. */
class BothDialectsTest {
    private static ServiceBusClientBuilder azure() {
        return new ServiceBusClientBuilder().connectionString(System.getenv("RAILBUS_CONNECTION_STRING"));
    }

    private static ServiceBusReceivedMessage one(ServiceBusReceiverClient receiver) {
        Duration patience = Duration.ofSeconds(Client.PATIENCE_SECONDS);
        return receiver.receiveMessages(1, patience).iterator().next();
    }

    @Test
    void whatAzuresSdkSendsARabbitMqClientConsumes() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare();
            try (ServiceBusSenderClient sender = azure().sender().queueName(queue).buildClient()) {
                sender.sendMessage(new ServiceBusMessage("from azure").setSubject("s"));
            }
            try (Client.Deliveries deliveries = client.consume(queue)) {
                Client.Delivery delivery = deliveries.next();
                assertEquals("from azure", Client.text(delivery.message()));
                assertEquals("s", delivery.message().subject());
                delivery.context().accept();
            }
        }
    }

    @Test
    void whatARabbitMqClientPublishesAzuresSdkReceives() {
        try (Client client = new Client()) {
            String queue = client.declare();
            client.publish(queue, "from rabbitmq");
            try (ServiceBusReceiverClient receiver = azure().receiver().queueName(queue).buildClient()) {
                ServiceBusReceivedMessage received = one(receiver);
                assertEquals("from rabbitmq", received.getBody().toString());
                receiver.complete(received);
            }
        }
    }

    @Test
    void whatARabbitMqClientDiscardsAzuresSdkReadsAsADeadLetter() throws InterruptedException {
        try (Client client = new Client()) {
            String dead = client.declare();
            String queue = client.declare(with -> with.deadLetterExchange("").deadLetterRoutingKey(dead));
            client.publish(queue, "bad");
            try (Client.Deliveries deliveries = client.consume(queue)) {
                deliveries.next().context().discard();
            }
            try (ServiceBusReceiverClient receiver = azure().receiver().queueName(dead).buildClient()) {
                ServiceBusReceivedMessage died = one(receiver);
                assertEquals("rejected", died.getDeadLetterReason());
                receiver.complete(died);
            }
        }
    }
}
