package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.message;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Duplicate detection: a second message with an id is accepted and dropped. */
class DuplicatesTest {
    @Test
    void aSecondMessageWithAnIdIsAcceptedAndDropped() {
        try (Queue queue = Queue.cleared("once")) {
            ServiceBusMessage first = message("first");
            ServiceBusMessage other = message("other");
            ServiceBusMessage again = message("again").setMessageId(first.getMessageId());
            queue.send(first);
            queue.send(again);
            queue.send(other);
            List<ServiceBusReceivedMessage> received = queue.take(2);
            assertEquals(sentIds(List.of(first, other)), receivedIds(received));
            assertEquals("first", received.get(0).getBody().toString());
            queue.send(message("once more").setMessageId(first.getMessageId()));
            queue.assertEmpty();
        }
    }

    @Test
    void aBatchIsCheckedMessageByMessage() {
        try (Queue queue = Queue.cleared("once")) {
            ServiceBusMessage first = message("first");
            ServiceBusMessage second = message("second");
            ServiceBusMessage again = message("again").setMessageId(first.getMessageId());
            queue.send(first);
            queue.sender().sendMessages(List.of(again, second, message("twice").setMessageId(second.getMessageId())));
            assertEquals(sentIds(List.of(first, second)), receivedIds(queue.take(2)));
            queue.assertEmpty();
        }
    }
}
