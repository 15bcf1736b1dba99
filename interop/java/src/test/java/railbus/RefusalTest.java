package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.message;

import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusErrorSource;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Refusals: a wrong key and a queue that does not exist, each with the error the wire contract names. */
class RefusalTest {
    static Stream<Named<Consumer<Queue>>> operations() {
        return Stream.of(
            Named.of("send", queue -> queue.send(message("body"))),
            Named.of("receive", queue -> Queue.receiveOne(queue.receiver())),
            Named.of("peek", Queue::peek));
    }

    @ParameterizedTest
    @MethodSource("operations")
    void aWrongKeyIsUnauthorized(Consumer<Queue> operation) {
        String good = Queue.connectionString();
        String wrong = good.replace("SharedAccessKey=", "SharedAccessKey=wrong");
        assertNotEquals(good, wrong);
        try (Queue queue = Queue.cleared("plain"); Queue refused = new Queue(queue.name, wrong)) {
            assertRefused(ServiceBusFailureReason.UNAUTHORIZED, operation, refused);
            queue.send(message("others are still served"));
            queue.take(1);
        }
    }

    @ParameterizedTest
    @MethodSource("operations")
    void aMissingQueueIsNotFound(Consumer<Queue> operation) {
        try (Queue missing = new Queue(Queue.PREFIX + "-missing", Queue.connectionString())) {
            assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, operation, missing);
        }
    }

    static ServiceBusException assertRefused(ServiceBusFailureReason reason, Consumer<Queue> operation, Queue queue) {
        RuntimeException thrown = assertThrows(RuntimeException.class, () -> operation.accept(queue));
        // A receiver reports that it has terminated, with the refusal as the cause, in the terms of AMQP.
        Throwable cause = thrown instanceof ServiceBusException ? thrown : thrown.getCause();
        ServiceBusException refused = cause instanceof AmqpException
            ? new ServiceBusException(cause, ServiceBusErrorSource.RECEIVE)
            : assertInstanceOf(ServiceBusException.class, cause);
        assertEquals(reason, refused.getReason());
        return refused;
    }

    @Test
    void aDisabledQueueRefusesWithTheErrorForThat() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue closed = new Queue("closed", broker.connectionString)) {
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> closed.send(message("body")));
            assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, refused.getReason());
        }
    }
}
