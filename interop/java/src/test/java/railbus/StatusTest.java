package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusErrorSource;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The status of a queue, each way, and one that vanishes when nobody uses it. */
class StatusTest extends OwnBroker {
    private void assertRefused(ServiceBusFailureReason reason, String name, Consumer<Queue> operation) {
        try (Queue queue = queue(name)) {
            RuntimeException thrown = assertThrows(RuntimeException.class, () -> operation.accept(queue));
            assertEquals(reason, reasonOf(thrown), thrown::toString);
        }
    }

    /** A receiver reports that it has terminated, with the refusal among the causes, in the terms of AMQP. */
    private static ServiceBusFailureReason reasonOf(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof ServiceBusException refused) {
                return refused.getReason();
            }
            if (cause instanceof AmqpException refused) {
                return new ServiceBusException(refused, ServiceBusErrorSource.RECEIVE).getReason();
            }
        }
        return null;
    }

    @ParameterizedTest
    @ValueSource(strings = {"closed", "no-entry"})
    void aQueueThatRefusesSendersSaysThatItIsDisabled(String name) {
        assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, name, queue -> queue.send(message("body")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"closed", "no-exit"})
    void aQueueThatRefusesReceiversSaysThatItIsDisabled(String name) {
        assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, name,
            queue -> receiveOne(queue.receiver()));
    }

    @Test
    void aQueueThatRefusesOnlyReceiversTakesMessages() {
        try (Queue queue = queue("no-exit")) {
            queue.send(message("body"));
        }
    }

    @Test
    void aQueueThatRefusesOnlySendersIsReceivedFrom() {
        try (Queue queue = queue("no-entry"); ServiceBusReceiverClient receiver = queue.receiver()) {
            assertEquals(List.of(), receiver.receiveMessages(1, Queue.LULL).stream().toList());
        }
    }

    @Test
    void aQueueVanishesWhenNobodyHasUsedItForItsFiveMinutes() throws Exception {
        try (Queue queue = queue("fleeting"); ServiceBusReceiverClient receiver = queue.receiver()) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            broker.advance("PT4M");
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(sent.getMessageId(), received.getMessageId());
            broker.advance("PT4M");
            receiver.complete(received);
            queue.send(message("body"));
        }
        broker.advance("PT5M");
        assertRefused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, "fleeting",
            queue -> queue.send(message("body")));
    }
}
