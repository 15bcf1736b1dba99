package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.eventually;
import static railbus.Queue.message;
import static railbus.Queue.messages;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessageContext;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/**
 * Processors of queues and of sessions: what handlers settle and what they leave to the SDK, prefetch, and locks that
 * the SDK renews while a handler works. Each test has a broker of its own and moves its clock.
 */
class ProcessorTest extends OwnBroker {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final List<ServiceBusReceivedMessage> handled = Collections.synchronizedList(new ArrayList<>());
    private final ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();

    private ServiceBusClientBuilder.ServiceBusProcessorClientBuilder processor(
            String name, Consumer<ServiceBusReceivedMessageContext> handler) {
        return builder().processor().queueName(name).processMessage(handler)
            .processError(context -> errors.add(context.getException()));
    }

    private ServiceBusClientBuilder.ServiceBusSessionProcessorClientBuilder sessionProcessor(
            Consumer<ServiceBusReceivedMessageContext> handler) {
        return builder().sessionProcessor().processMessage(handler)
            .processError(context -> errors.add(context.getException()));
    }

    private void note(ServiceBusReceivedMessageContext context) {
        handled.add(context.getMessage());
    }

    private List<ServiceBusReceivedMessage> handledSoFar() {
        synchronized (handled) {
            return List.copyOf(handled);
        }
    }

    private void assertNoErrors() {
        assertTrue(errors.isEmpty(), errors::toString);
    }

    private static List<ServiceBusMessage> inSession(String session, int count) {
        return messages(count).stream().map(one -> one.setSessionId(session)).toList();
    }

    /** What a handler does until a test lets it go on. */
    private static void await(CompletableFuture<?> released) {
        released.orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
    }

    @Test
    void aProcessorThatPrefetchesGetsEveryMessageOnce() {
        try (Queue queue = queue("orders"); ServiceBusProcessorClient processor = processor("orders", this::note)
                .prefetchCount(20).maxConcurrentCalls(5).buildProcessorClient()) {
            List<ServiceBusMessage> sent = messages(100);
            queue.sender().sendMessages(sent);
            processor.start();
            eventually("the handling of all messages", () -> handled.size() >= sent.size());
            eventually("the removal of all messages", () -> queue.peek().isEmpty());
            processor.stop();
            assertEquals(sentIds(sent).stream().sorted().toList(), receivedIds(handledSoFar()).stream().sorted().toList());
            assertNoErrors();
        }
    }

    @Test
    void aProcessorSettlesEachMessageInItsOwnWay() {
        Consumer<ServiceBusReceivedMessageContext> handler = context -> {
            switch (context.getMessage().getBody().toString()) {
                case "defer" -> context.defer();
                case "dead-letter" -> context.deadLetter(new DeadLetterOptions().setDeadLetterReason("as told"));
                case "abandon" -> abandonOnce(context);
                default -> context.complete();
            }
            note(context);
        };
        try (Queue queue = queue("orders"); ServiceBusProcessorClient processor = processor("orders", handler)
                .disableAutoComplete().buildProcessorClient()) {
            queue.send(message("complete"), message("abandon"), message("dead-letter"), message("defer"));
            processor.start();
            eventually("the handling of all messages", () -> handled.size() >= 5);
            processor.stop();
            List<ServiceBusReceivedMessage> left = queue.peek();
            assertEquals(1, left.size());
            assertEquals(ServiceBusMessageState.DEFERRED, left.get(0).getState());
            assertEquals("as told", queue.takeDead().getDeadLetterReason());
            assertNoErrors();
        }
    }

    private static void abandonOnce(ServiceBusReceivedMessageContext context) {
        if (context.getMessage().getDeliveryCount() == 0) {
            context.abandon();
        } else {
            context.complete();
        }
    }

    @Test
    void aMessageWhoseHandlerThrowsIsAbandoned() {
        Consumer<ServiceBusReceivedMessageContext> handler = context -> {
            note(context);
            throw new IllegalStateException("not today");
        };
        try (Queue queue = queue("brief");
                ServiceBusProcessorClient processor = processor("brief", handler).buildProcessorClient()) {
            queue.send(message("body"));
            processor.start();
            assertEquals("MaxDeliveryCountExceeded", queue.takeDead().getDeadLetterReason());
            processor.stop();
            assertEquals(List.of(0L, 1L, 2L), handledSoFar().stream().map(one -> one.getDeliveryCount()).toList());
        }
    }

    @Test
    void aProcessorKeepsTheLockOfItsMessage() throws Exception {
        broker.freeze();
        CompletableFuture<ServiceBusReceivedMessage> started = new CompletableFuture<>();
        CompletableFuture<Void> released = new CompletableFuture<>();
        Consumer<ServiceBusReceivedMessageContext> handler = context -> {
            started.complete(context.getMessage());
            await(released);
        };
        try (Queue queue = queue("brief"); ServiceBusProcessorClient processor = processor("brief", handler)
                .maxAutoLockRenewDuration(MINUTE).buildProcessorClient()) {
            queue.send(message("body"));
            processor.start();
            ServiceBusReceivedMessage held = started.join();
            OffsetDateTime end = held.getLockedUntil();
            broker.advance("PT4S");
            eventually("the renewal", () -> held.getLockedUntil().isAfter(end));
            broker.advance("PT4S");
            released.complete(null);
            eventually("the removal of the message", () -> queue.peek().isEmpty());
            assertNoErrors();
        }
    }

    @Test
    void aLockThatAProcessorDoesNotRenewIsLostAndTheMessageComesAgain() throws Exception {
        CompletableFuture<Void> started = new CompletableFuture<>();
        CompletableFuture<Void> released = new CompletableFuture<>();
        Consumer<ServiceBusReceivedMessageContext> handler = context -> {
            note(context);
            started.complete(null);
            await(released);
        };
        try (Queue queue = queue("orders"); ServiceBusProcessorClient processor = processor("orders", handler)
                .maxAutoLockRenewDuration(Duration.ZERO).buildProcessorClient()) {
            queue.send(message("body"));
            processor.start();
            started.join();
            broker.advance("PT5M");
            released.complete(null);
            eventually("the second delivery", () -> handled.size() >= 2);
            eventually("the removal of the message", () -> queue.peek().isEmpty());
            assertEquals(List.of(0L, 1L), handledSoFar().stream().map(one -> one.getDeliveryCount()).toList());
        }
    }

    @Test
    void aSessionProcessorGetsEachSessionInOrder() {
        try (Queue queue = queue("sessions"); ServiceBusProcessorClient processor = sessionProcessor(this::note)
                .queueName("sessions").maxConcurrentSessions(2).buildProcessorClient()) {
            List<ServiceBusMessage> first = inSession("a", 10);
            List<ServiceBusMessage> second = inSession("b", 10);
            queue.sender().sendMessages(first);
            queue.sender().sendMessages(second);
            processor.start();
            eventually("the handling of all messages", () -> handled.size() >= 20);
            processor.stop();
            assertEquals(sentIds(first), receivedIds(handledOf("a")));
            assertEquals(sentIds(second), receivedIds(handledOf("b")));
            assertNoErrors();
        }
    }

    private List<ServiceBusReceivedMessage> handledOf(String session) {
        return handledSoFar().stream().filter(one -> one.getSessionId().equals(session)).toList();
    }

    /** An idle session is given back, so that one processor gets to them all. */
    @Test
    void aSessionProcessorGoesOnToTheNextSession() {
        try (Queue queue = queue("sessions"); ServiceBusProcessorClient processor = sessionProcessor(this::note)
                .queueName("sessions").maxConcurrentSessions(1).sessionIdleTimeout(Duration.ofMillis(200))
                .buildProcessorClient()) {
            for (String session : List.of("a", "b", "c")) {
                queue.sender().sendMessages(inSession(session, 2));
            }
            processor.start();
            eventually("the handling of all messages", () -> handled.size() >= 6);
            assertEquals(List.of("a", "a", "b", "b", "c", "c"),
                handledSoFar().stream().map(ServiceBusReceivedMessage::getSessionId).toList());
        }
    }

    /** The SDK shows neither a session's lock nor that it renewed it, so the lock is outwaited in real time. */
    @Test
    void aSessionProcessorKeepsTheLockOfItsSession() {
        CompletableFuture<ServiceBusReceivedMessage> started = new CompletableFuture<>();
        CompletableFuture<Void> released = new CompletableFuture<>();
        Consumer<ServiceBusReceivedMessageContext> handler = context -> {
            started.complete(context.getMessage());
            await(released);
            context.complete();
            note(context);
        };
        try (Queue queue = queue("brief-sessions"); ServiceBusProcessorClient processor = sessionProcessor(handler)
                .queueName("brief-sessions").maxAutoLockRenewDuration(MINUTE).disableAutoComplete()
                .buildProcessorClient()) {
            queue.sender().sendMessages(inSession("a", 1));
            processor.start();
            started.join();
            Queue.outwaitBriefLock();
            released.complete(null);
            eventually("the completion", () -> handled.size() == 1);
            assertNoErrors();
        }
    }
}
