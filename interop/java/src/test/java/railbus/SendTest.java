package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.Queue.messages;
import static railbus.Queue.receiveOne;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.CreateMessageBatchOptions;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

/** Sending: one, a batch, many at once, large; and what the broker stamps on a message. */
class SendTest {
    /** Needs no broker: the set-up runs it so that Maven has fetched all that a run takes. */
    @Test
    void everyMessageHasAnIdOfItsOwn() {
        assertEquals(100, sentIds(messages(100)).stream().distinct().count());
    }

    @Test
    void aSentMessageArrivesWithItsBody() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("hello");
            queue.send(sent);
            ServiceBusReceivedMessage received = queue.take(1).get(0);
            assertEquals(sent.getMessageId(), received.getMessageId());
            assertEquals("hello", received.getBody().toString());
        }
    }

    @Test
    void aBatchArrivesWholeAndInOrder() {
        try (Queue queue = Queue.cleared("plain")) {
            List<ServiceBusMessage> sent = messages(10);
            ServiceBusSenderClient sender = queue.sender();
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            sent.forEach(one -> assertTrue(batch.tryAddMessage(one)));
            sender.sendMessages(batch);
            List<ServiceBusReceivedMessage> received = queue.take(10);
            assertEquals(sentIds(sent), receivedIds(received));
            for (int place = 0; place < 10; place++) {
                assertEquals("number " + place, received.get(place).getBody().toString());
                assertEquals(received.get(0).getSequenceNumber() + place, received.get(place).getSequenceNumber());
            }
        }
    }

    @Test
    void aFullBatchTakesNoMoreAndIsSent() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusSenderClient sender = queue.sender();
            ServiceBusMessageBatch batch =
                sender.createMessageBatch(new CreateMessageBatchOptions().setMaximumSizeInBytes(4096));
            while (batch.tryAddMessage(message("x".repeat(500)))) {
                assertTrue(batch.getCount() < 10);
            }
            sender.sendMessages(batch);
            assertEquals(batch.getCount(), queue.take(batch.getCount()).size());
            queue.assertEmpty();
        }
    }

    @Test
    void aListOfMessagesArrivesWhole() {
        try (Queue queue = Queue.cleared("plain")) {
            List<ServiceBusMessage> sent = messages(5);
            queue.sender().sendMessages(sent);
            assertEquals(sentIds(sent), receivedIds(queue.take(5)));
        }
    }

    @Test
    void twoHundredConcurrentSendsAllArriveOnce() {
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderAsyncClient sender = new ServiceBusClientBuilder()
                .connectionString(Queue.connectionString()).sender().queueName(queue.name).buildAsyncClient()) {
            List<ServiceBusMessage> sent = messages(200);
            Flux.fromIterable(sent).flatMap(sender::sendMessage, 200).then().block(Queue.PATIENCE);
            assertEquals(
                sentIds(sent).stream().sorted().toList(),
                receivedIds(queue.take(200)).stream().sorted().toList());
            queue.assertEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {200, 900})
    void aLargeMessageArrivesByteForByte(int kib) {
        try (Queue queue = Queue.cleared("large")) {
            byte[] body = new byte[kib << 10];
            new Random(kib).nextBytes(body);
            queue.send(message(BinaryData.fromBytes(body)));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertArrayEquals(body, received.getBody().toBytes());
            receiver.complete(received);
            queue.assertEmpty();
        }
    }

    @Test
    void sequenceNumbersRiseAndEnqueuedTimesAreNow() {
        try (Queue queue = Queue.cleared("plain")) {
            OffsetDateTime before = OffsetDateTime.now().minusSeconds(5);
            queue.send(messages(5).toArray(ServiceBusMessage[]::new));
            List<ServiceBusReceivedMessage> received = queue.take(5);
            assertTrue(received.get(0).getSequenceNumber() > 0);
            for (int place = 1; place < 5; place++) {
                ServiceBusReceivedMessage previous = received.get(place - 1);
                assertTrue(received.get(place).getSequenceNumber() > previous.getSequenceNumber());
                assertFalse(received.get(place).getEnqueuedTime().isBefore(previous.getEnqueuedTime()));
            }
            assertTrue(before.isBefore(received.get(0).getEnqueuedTime()));
            assertTrue(received.get(4).getEnqueuedTime().isBefore(OffsetDateTime.now().plusSeconds(5)));
        }
    }
}
