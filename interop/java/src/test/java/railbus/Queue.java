package railbus;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * One queue of the broker, seen through the SDK, with the steps that tests repeat. Closing it closes every
 * client it made. Waits are on what can be observed and fail after {@link #PATIENCE}.
 */
final class Queue implements AutoCloseable {
    static final String PREFIX = "java";
    static final Duration PATIENCE = Duration.ofSeconds(30);
    static final Duration LULL = Duration.ofMillis(500);
    /** A lock and some more. */
    static final Duration LOCK_OVER = Duration.ofSeconds(90);

    final String name;
    private final Supplier<ServiceBusClientBuilder> clients;
    private final List<AutoCloseable> opened = new ArrayList<>();

    Queue(String name, String connectionString) {
        this(name, () -> new ServiceBusClientBuilder().connectionString(connectionString));
    }

    /** As it is seen through clients that are built in another way. */
    Queue(String name, Supplier<ServiceBusClientBuilder> clients) {
        this.name = name;
        this.clients = clients;
    }

    /** The queue {@code java-<suffix>}, emptied. */
    static Queue of(String suffix) {
        return new Queue(PREFIX + "-" + suffix, connectionString());
    }

    static Queue cleared(String suffix) {
        Queue queue = of(suffix);
        queue.clear(SubQueue.NONE);
        queue.clear(SubQueue.DEAD_LETTER_QUEUE);
        return queue;
    }

    static String connectionString() {
        return System.getenv("RAILBUS_CONNECTION_STRING");
    }

    /** A message with an id that no other test or run has used. */
    static ServiceBusMessage message(String body) {
        return message(BinaryData.fromString(body));
    }

    static ServiceBusMessage message(BinaryData body) {
        return new ServiceBusMessage(body).setMessageId(UUID.randomUUID().toString());
    }

    static List<ServiceBusMessage> messages(int count) {
        return IntStream.range(0, count).mapToObj(number -> message("number " + number)).toList();
    }

    static List<String> sentIds(List<ServiceBusMessage> sent) {
        return sent.stream().map(ServiceBusMessage::getMessageId).toList();
    }

    static List<String> receivedIds(List<ServiceBusReceivedMessage> received) {
        return received.stream().map(ServiceBusReceivedMessage::getMessageId).toList();
    }

    ServiceBusSenderClient sender() {
        return open(builder().sender().queueName(name).buildClient());
    }

    ServiceBusReceiverClient receiver() {
        return receiver(ServiceBusReceiveMode.PEEK_LOCK, SubQueue.NONE);
    }

    ServiceBusReceiverClient deadReceiver() {
        return receiver(ServiceBusReceiveMode.PEEK_LOCK, SubQueue.DEAD_LETTER_QUEUE);
    }

    ServiceBusReceiverClient receiver(ServiceBusReceiveMode mode, SubQueue subQueue) {
        return open(builder().receiver().queueName(name).receiveMode(mode).subQueue(subQueue)
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    void send(ServiceBusMessage... messages) {
        try (ServiceBusSenderClient sender = builder().sender().queueName(name).buildClient()) {
            for (ServiceBusMessage message : messages) {
                sender.sendMessage(message);
            }
        }
    }

    /**
     * Receives exactly {@code count} messages and completes them. Not in receive-and-delete: on a busy machine the SDK's
     * synchronous client ends a call between two of them, and what comes a moment later is lost with it.
     */
    List<ServiceBusReceivedMessage> take(int count) {
        ServiceBusReceiverClient receiver = receiver();
        List<ServiceBusReceivedMessage> received = receive(receiver, count);
        received.forEach(receiver::complete);
        return received;
    }

    ServiceBusReceivedMessage takeDead() {
        return receive(receiver(ServiceBusReceiveMode.RECEIVE_AND_DELETE, SubQueue.DEAD_LETTER_QUEUE), 1).get(0);
    }

    List<ServiceBusReceivedMessage> peek() {
        return peek(receiver());
    }

    List<ServiceBusReceivedMessage> peekDead() {
        return peek(deadReceiver());
    }

    void assertEmpty() {
        assertTrue(peek().isEmpty(), () -> name + " is not empty");
    }

    /** Removes everything, also what an interrupted run left locked, deferred or dead-lettered. */
    private void clear(SubQueue subQueue) {
        ServiceBusReceiverClient receiver = receiver(ServiceBusReceiveMode.RECEIVE_AND_DELETE, subQueue);
        for (List<ServiceBusReceivedMessage> left; !(left = peek(receiver)).isEmpty();) {
            List<Long> deferred = left.stream().filter(one -> one.getState() == ServiceBusMessageState.DEFERRED)
                .map(ServiceBusReceivedMessage::getSequenceNumber).toList();
            if (deferred.isEmpty()) {
                receiver.receiveMessages(left.size(), Duration.ofSeconds(1)).stream().count();
            } else {
                receiver.receiveDeferredMessageBatch(deferred).stream().count();
            }
        }
        receiver.close();
    }

    private static List<ServiceBusReceivedMessage> peek(ServiceBusReceiverClient receiver) {
        return receiver.peekMessages(250, 1).stream().toList();
    }

    /**
     * Receives exactly {@code count} messages, in as many calls as the SDK needs. What comes when it has just ended a
     * call it neither hands out nor gives back; that comes again when its lock is over, long after what was behind it.
     * That alone is put in its place; all others stay in the order in which they came.
     */
    static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int count) {
        List<ServiceBusReceivedMessage> received = new ArrayList<>();
        Instant began = Instant.now();
        while (received.size() < count) {
            assertTrue(Instant.now().isBefore(began.plus(LOCK_OVER)), received.size() + " of " + count + " messages");
            for (ServiceBusReceivedMessage one : receiver.receiveMessages(count - received.size(), Duration.ofSeconds(5))) {
                boolean again = one.getDeliveryCount() > 0 && Instant.now().isAfter(began.plus(PATIENCE));
                received.add(again ? placeOf(one, received) : received.size(), one);
            }
        }
        return received;
    }

    /** Before the first that was sent after it. */
    private static int placeOf(ServiceBusReceivedMessage one, List<ServiceBusReceivedMessage> received) {
        return (int) received.stream().takeWhile(other -> other.getSequenceNumber() < one.getSequenceNumber()).count();
    }

    static ServiceBusReceivedMessage receiveOne(ServiceBusReceiverClient receiver) {
        return receive(receiver, 1).get(0);
    }

    static void assertNothingComes(ServiceBusReceiverClient receiver) {
        assertTrue(receiver.receiveMessages(1, LULL).stream().findAny().isEmpty(), "a message came");
    }

    static void eventually(String what, BooleanSupplier condition) {
        for (Instant deadline = Instant.now().plus(PATIENCE); !condition.getAsBoolean(); pause(50)) {
            if (Instant.now().isAfter(deadline)) {
                fail(what + " did not happen within " + PATIENCE);
            }
        }
    }

    /** Waits until the wall clock is past a time that the broker has announced. */
    static void waitUntilPassed(OffsetDateTime moment) {
        while (!OffsetDateTime.now().isAfter(moment)) {
            pause(Duration.between(OffsetDateTime.now(), moment).toMillis() + 10);
        }
    }

    /** Waits for as long as a lock of {@code brief} or {@code brief-sessions} lasts, so that an earlier one is over. */
    static void outwaitBriefLock() {
        waitUntilPassed(OffsetDateTime.now().plusSeconds(5));
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(Math.max(1, milliseconds));
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private ServiceBusClientBuilder builder() {
        return clients.get();
    }

    private synchronized <T extends AutoCloseable> T open(T client) {
        opened.add(client);
        return client;
    }

    @Override
    public void close() {
        for (AutoCloseable client : opened) {
            try {
                client.close();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        }
    }
}
