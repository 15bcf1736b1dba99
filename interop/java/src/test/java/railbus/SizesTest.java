package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.message;
import static railbus.Queue.receive;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.List;
import java.util.Random;
import org.apache.qpid.proton.Proton;
import org.apache.qpid.proton.amqp.Binary;
import org.apache.qpid.proton.amqp.messaging.Data;
import org.apache.qpid.proton.message.Message;
import org.junit.jupiter.api.Test;

/** Sizes: what is just below the limit of senders comes through in every way of receiving, what is above stays out. */
class SizesTest {
    /** What {@code interop/railbus.toml} says. */
    private static final int LIMIT = 1 << 20;
    /** What a broker says that nobody configured. */
    private static final int STANDARD_LIMIT = 256 << 10;

    /**
     * The SDK keeps so much for the envelope of a batch, also when it sends a single message. One that is above that
     * but below the limit it neither sends nor refuses.
     */
    private static final int ENVELOPE = 16 << 10;

    private static byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        new Random(count).nextBytes(bytes);
        return bytes;
    }

    @Test
    void aMessageOfAlmostTheLimitComesInEveryWay() throws Exception {
        // The sections take less than 100 bytes.
        byte[] body = bytes(LIMIT - 100);
        try (Queue queue = Queue.cleared("large"); PlainSender sender = new PlainSender(queue.name)) {
            Message sent = Proton.message();
            sent.setBody(new Data(new Binary(body)));
            sender.send(sent);
            sender.send(sent);
            assertArrayEquals(body, queue.peek().get(0).getBody().toBytes());
            ServiceBusReceiverClient receiver = queue.receiver();
            List<ServiceBusReceivedMessage> received = receive(receiver, 2);
            received.forEach(receiver::defer);
            List<Long> numbers = received.stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList();
            // Both in one answer, which is twice as large as a message may be.
            List<ServiceBusReceivedMessage> deferred = receiver.receiveDeferredMessageBatch(numbers).stream().toList();
            assertArrayEquals(body, deferred.get(0).getBody().toBytes());
            assertArrayEquals(body, deferred.get(1).getBody().toBytes());
            receiver.complete(deferred.get(0));
            receiver.deadLetter(deferred.get(1));
            assertArrayEquals(body, queue.takeDead().getBody().toBytes());
        }
    }

    @Test
    void theLargestMessageOfTheSdkReachesASubscription() throws Exception {
        ServiceBusMessage sent = message(BinaryData.fromBytes(bytes(STANDARD_LIMIT - ENVELOPE - 100)));
        try (VirtualBroker broker = new VirtualBroker("topics.json")) {
            Subscription all = new Subscription(broker, "events", "all");
            all.publish(sent);
            assertArrayEquals(sent.getBody().toBytes(), all.take().getBody().toBytes());
        }
    }

    /** The SDK knows the limit from the broker's attach and sends nothing that is larger. */
    @Test
    void aMessageAboveTheLimitIsNotSentAndTheNextOneIs() {
        try (Queue queue = Queue.cleared("large")) {
            ServiceBusSenderClient sender = queue.sender();
            ServiceBusMessage tooLarge = new ServiceBusMessage(BinaryData.fromBytes(bytes(LIMIT)));
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> sender.sendMessage(tooLarge));
            assertEquals(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED, refused.getReason());
            ServiceBusMessage sent = message("small");
            sender.sendMessage(sent);
            assertEquals(sentIds(List.of(sent)), receivedIds(queue.take(1)));
        }
    }
}
