package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.message;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The asynchronous clients and the status of a queue, each way, and one that vanishes when nobody uses it. */
class AsyncStatusTest extends AsyncClients {
    @ParameterizedTest
    @ValueSource(strings = {"closed", "no-entry"})
    void aQueueThatRefusesSendersSaysThatItIsDisabled(String name) {
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED,
            reasonOf(sender(name).sendMessage(message("body"))));
    }

    @ParameterizedTest
    @ValueSource(strings = {"closed", "no-exit"})
    void aQueueThatRefusesReceiversSaysThatItIsDisabled(String name) {
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED,
            reasonOf(receiver(name).receiveMessages().next()));
    }

    @Test
    void aQueueThatRefusesOnlyReceiversTakesMessages() {
        sender("no-exit").sendMessage(message("body")).block(PATIENCE);
    }

    @Test
    void aQueueThatRefusesOnlySendersIsReceivedFrom() {
        assertEquals(List.of(),
            receiver("no-entry").receiveMessages().take(Queue.LULL).collectList().block(PATIENCE));
    }

    @Test
    void aQueueVanishesWhenNobodyHasUsedItForItsFiveMinutes() throws Exception {
        ServiceBusMessage sent = message("body");
        ServiceBusSenderAsyncClient sender = sender("fleeting");
        ServiceBusReceiverAsyncClient receiver = receiver("fleeting");
        sender.sendMessage(sent).block(PATIENCE);
        broker.advance("PT4M");
        ServiceBusReceivedMessage received = next(receiver);
        assertEquals(sent.getMessageId(), received.getMessageId());
        broker.advance("PT4M");
        receiver.complete(received).block(PATIENCE);
        sender.sendMessage(message("body")).block(PATIENCE);
        sender.close();
        receiver.close();
        broker.advance("PT5M");
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND,
            reasonOf(sender("fleeting").sendMessage(message("body"))));
    }
}
