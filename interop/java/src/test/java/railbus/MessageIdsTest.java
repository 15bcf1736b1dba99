package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.receiveOne;
import static railbus.Queue.receivedIds;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.OffsetDateTime;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Message ids: a message that comes without one gets one from the broker, and keeps it. */
class MessageIdsTest {
    private static ServiceBusMessage withoutId() {
        return new ServiceBusMessage("same");
    }

    /** The ids are such as the broker gives, and no two are the same. */
    private static void assertAssigned(List<String> ids) {
        assertTrue(ids.stream().allMatch(id -> id.matches("[0-9a-fA-F]{32}")), ids::toString);
        assertEquals(ids.size(), ids.stream().distinct().count(), ids::toString);
    }

    @Test
    void aMessageWithoutAnIdGetsOneThatStays() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(withoutId());
            String id = queue.peek().get(0).getMessageId();
            assertAssigned(List.of(id));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage first = receiveOne(receiver);
            assertEquals(id, first.getMessageId());
            receiver.abandon(first);
            ServiceBusReceivedMessage second = receiveOne(receiver);
            assertEquals(id, second.getMessageId());
            receiver.defer(second);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(second.getSequenceNumber());
            assertEquals(id, deferred.getMessageId());
            receiver.deadLetter(deferred);
            assertEquals(id, queue.peekDead().get(0).getMessageId());
            assertEquals(id, queue.takeDead().getMessageId());
        }
    }

    @Test
    void eachMessageOfABatchGetsAnIdOfItsOwn() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusSenderClient sender = queue.sender();
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            for (int place = 0; place < 3; place++) {
                assertTrue(batch.tryAddMessage(withoutId()));
            }
            sender.sendMessages(batch);
            assertAssigned(receivedIds(queue.take(3)));
        }
    }

    @Test
    void aScheduledMessageHasItsIdBeforeItsTime() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = new Queue("orders", broker.connectionString)) {
            OffsetDateTime later = OffsetDateTime.now().plusHours(1);
            queue.sender().scheduleMessages(List.of(withoutId(), withoutId()), later).forEach(number -> { });
            queue.send(withoutId().setScheduledEnqueueTime(later.plusSeconds(1)));
            List<String> waiting = receivedIds(queue.peek());
            assertEquals(3, waiting.size());
            assertAssigned(waiting);
            broker.advance("PT61M");
            assertEquals(waiting, receivedIds(queue.take(3)));
        }
    }

    @Test
    void copiesAndForwardsHaveTheIdOfTheMessage() throws Exception {
        try (VirtualBroker broker = new VirtualBroker("topics.json");
            Queue archive = new Queue("archive", broker.connectionString)) {
            Subscription all = new Subscription(broker, "events", "all");
            all.publish(withoutId().setSubject("archived"));
            String id = all.take().getMessageId();
            assertAssigned(List.of(id));
            assertEquals(List.of(id), receivedIds(archive.take(1)));
        }
    }

    @Test
    void messagesWithoutAnIdAreNoDuplicates() {
        try (Queue queue = Queue.cleared("once")) {
            queue.send(withoutId(), withoutId());
            assertAssigned(receivedIds(queue.take(2)));
        }
    }

    @Test
    void anIdThatTheSenderGaveIsKeptEvenWhenItIsEmpty() {
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(withoutId().setMessageId("mine"), withoutId().setMessageId(""));
            assertEquals(List.of("mine", ""), receivedIds(queue.take(2)));
        }
    }
}
