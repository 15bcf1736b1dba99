package railbus;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** What tests with a broker of their own share, whose clock they move. */
abstract class OwnBroker {
    private final String entities;
    VirtualBroker broker;

    OwnBroker() {
        this("clock.json");
    }

    OwnBroker(String entities) {
        this.entities = entities;
    }

    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker(entities);
    }

    @AfterEach
    void stop() {
        broker.close();
    }

    Queue queue(String name) {
        return new Queue(name, broker.connectionString);
    }

    ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(broker.connectionString);
    }
}
