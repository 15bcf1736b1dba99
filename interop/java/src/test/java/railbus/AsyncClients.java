package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.message;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverAsyncClient;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import reactor.core.publisher.Mono;

/**
 * What the tests of asynchronous clients share: a broker of the test's own, whose clock it moves, and clients that are
 * closed at the end.
 */
abstract class AsyncClients {
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final Map<ServiceBusReceiverAsyncClient, Deliveries> deliveries = new HashMap<>();
    VirtualBroker broker;

    @BeforeEach
    void start() throws IOException {
        broker = new VirtualBroker();
    }

    @AfterEach
    void stop() throws Exception {
        for (AutoCloseable client : opened) {
            client.close();
        }
        broker.close();
    }

    synchronized <T extends AutoCloseable> T open(T client) {
        opened.add(client);
        return client;
    }

    ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(broker.connectionString)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(10)));
    }

    Queue queue(String name) {
        return open(new Queue(name, broker.connectionString));
    }

    ServiceBusSenderAsyncClient sender(String name) {
        return open(builder().sender().queueName(name).buildAsyncClient());
    }

    ServiceBusClientBuilder.ServiceBusReceiverClientBuilder receiving(String name) {
        return builder().receiver().queueName(name).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO);
    }

    ServiceBusReceiverAsyncClient receiver(String name) {
        return open(receiving(name).buildAsyncClient());
    }

    ServiceBusSessionReceiverAsyncClient sessions() {
        return open(builder().sessionReceiver().queueName("sessions").disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient());
    }

    /** The next message of {@code receiver}, whose link stays open until the test ends. */
    ServiceBusReceivedMessage next(ServiceBusReceiverAsyncClient receiver) {
        return deliveries.computeIfAbsent(receiver, it -> open(it.receiveMessages().subscribeWith(new Deliveries())))
            .next();
    }

    static ServiceBusFailureReason reasonOf(Mono<?> refused) {
        return assertThrows(ServiceBusException.class, () -> refused.block(PATIENCE)).getReason();
    }

    static List<ServiceBusMessage> inSession(String session, int count) {
        return IntStream.range(0, count).mapToObj(number -> message("number " + number).setSessionId(session)).toList();
    }
}
