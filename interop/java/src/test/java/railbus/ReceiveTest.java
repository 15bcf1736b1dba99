package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.assertNothingComes;
import static railbus.Queue.message;
import static railbus.Queue.messages;
import static railbus.Queue.receiveOne;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Receiving in both modes, browsing, processing, and several receivers on one queue. */
class ReceiveTest {
    @Test
    void peekLockHidesAMessageUntilItIsCompleted() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient holder = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(holder);
            assertEquals(sent.getMessageId(), received.getMessageId());
            assertEquals(received.getLockToken(), UUID.fromString(received.getLockToken()).toString());
            assertTrue(received.getLockedUntil().isAfter(OffsetDateTime.now()));
            assertNothingComes(queue.receiver());
            holder.complete(received);
            queue.assertEmpty();
        }
    }

    @Test
    void receiveAndDeleteRemovesAtDelivery() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient receiver =
                queue.receiver(ServiceBusReceiveMode.RECEIVE_AND_DELETE, SubQueue.NONE);
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(sent.getMessageId(), received.getMessageId());
            assertNull(received.getLockedUntil());
            queue.assertEmpty();
        }
    }

    @Test
    void peekShowsMessagesInOrderAndTakesNothing() {
        try (Queue queue = Queue.cleared("peeked")) {
            List<ServiceBusMessage> sent = messages(5);
            queue.send(sent.toArray(ServiceBusMessage[]::new));
            ServiceBusReceiverClient receiver = queue.receiver();
            List<ServiceBusReceivedMessage> peeked = new ArrayList<>();
            receiver.peekMessages(3).forEach(peeked::add);
            receiver.peekMessages(10).forEach(peeked::add);
            assertEquals(sentIds(sent), receivedIds(peeked));
            long third = peeked.get(2).getSequenceNumber();
            assertEquals(peeked.get(2).getMessageId(), receiver.peekMessage(third).getMessageId());
            for (ServiceBusReceivedMessage one : peeked) {
                assertEquals(0, one.getDeliveryCount());
                assertEquals(ServiceBusMessageState.ACTIVE, one.getState());
                assertEquals(AnnotationsTest.NOT_LOCKED, one.getLockedUntil());
            }
            assertEquals(sentIds(sent), receivedIds(queue.take(5)));
        }
    }

    @Test
    void peekShowsAMessageThatIsLocked() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(List.of(sent.getMessageId()), receivedIds(queue.peek()));
            receiver.complete(received);
        }
    }

    @Test
    void aProcessorGetsEveryMessageCompletedByTheSdk() {
        try (Queue queue = Queue.cleared("plain")) {
            List<ServiceBusMessage> sent = messages(20);
            List<String> handled = Collections.synchronizedList(new ArrayList<>());
            ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
            try (ServiceBusProcessorClient processor = new ServiceBusClientBuilder()
                .connectionString(Queue.connectionString()).processor().queueName(queue.name).maxConcurrentCalls(4)
                .processMessage(context -> handled.add(context.getMessage().getMessageId()))
                .processError(context -> errors.add(context.getException())).buildProcessorClient()) {
                processor.start();
                queue.send(sent.toArray(ServiceBusMessage[]::new));
                Queue.eventually("the handling of all messages", () -> handled.size() >= 20);
                Queue.eventually("the removal of all messages", () -> queue.peek().isEmpty());
            }
            assertTrue(errors.isEmpty(), errors::toString);
            assertEquals(sentIds(sent).stream().sorted().toList(), handled.stream().sorted().toList());
        }
    }

    @Test
    void competingReceiversGetDisjointMessages() {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (Queue queue = Queue.cleared("compete")) {
            List<ServiceBusMessage> sent = messages(100);
            queue.sender().sendMessages(sent);
            List<CompletableFuture<List<String>>> shares = IntStream.range(0, 4)
                .mapToObj(number -> CompletableFuture.supplyAsync(() -> completeUntilEmpty(queue.name), threads))
                .toList();
            Stream<String> received = shares.stream().flatMap(share -> share.join().stream());
            assertEquals(sentIds(sent).stream().sorted().toList(), received.sorted().toList());
            queue.assertEmpty();
        } finally {
            threads.shutdown();
        }
    }

    /** Works like a consumer with a connection of its own until nothing comes for a second. */
    private static List<String> completeUntilEmpty(String name) {
        List<String> done = new ArrayList<>();
        try (Queue queue = new Queue(name, Queue.connectionString())) {
            ServiceBusReceiverClient receiver = queue.receiver();
            for (List<ServiceBusReceivedMessage> batch; !(batch = next(receiver)).isEmpty();) {
                batch.forEach(receiver::complete);
                done.addAll(receivedIds(batch));
            }
        }
        return done;
    }

    private static List<ServiceBusReceivedMessage> next(ServiceBusReceiverClient receiver) {
        return receiver.receiveMessages(5, Duration.ofSeconds(1)).stream().toList();
    }
}
