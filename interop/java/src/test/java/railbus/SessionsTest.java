package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.eventually;
import static railbus.Queue.message;
import static railbus.Queue.receive;
import static railbus.Queue.receiveOne;
import static railbus.Queue.waitUntilPassed;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Sessions: one holder at a time, in order, with a state of its own. */
class SessionsTest {
    private static final String NAME = Queue.PREFIX + "-sessions";

    /** An id that no other test or run has used. */
    private final String session = UUID.randomUUID().toString();
    private final ServiceBusSessionReceiverClient sessions = sessions();

    private static ServiceBusClientBuilder builder(String connectionString) {
        return new ServiceBusClientBuilder().connectionString(connectionString)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(10)));
    }

    private static ServiceBusSessionReceiverClient sessions() {
        return sessions(Queue.connectionString(), NAME);
    }

    private static ServiceBusSessionReceiverClient sessions(String connectionString, String queue) {
        return builder(connectionString).sessionReceiver().queueName(queue).maxAutoLockRenewDuration(Duration.ZERO)
            .buildClient();
    }

    private ServiceBusReceiverClient acceptOnceFree(ServiceBusSessionReceiverClient client) {
        AtomicReference<ServiceBusReceiverClient> accepted = new AtomicReference<>();
        eventually("accepting the session", () -> {
            try {
                accepted.set(client.acceptSession(session));
            } catch (ServiceBusException held) {
                return false;
            }
            return true;
        });
        return accepted.get();
    }

    @AfterEach
    void close() {
        sessions.close();
    }

    private static void send(String session, String... bodies) {
        try (ServiceBusSenderClient sender = builder(Queue.connectionString()).sender().queueName(NAME).buildClient()) {
            for (String body : bodies) {
                sender.sendMessage(message(body).setSessionId(session));
            }
        }
    }

    private static List<String> bodies(List<ServiceBusReceivedMessage> received) {
        return received.stream().map(one -> one.getBody().toString()).toList();
    }

    @Test
    void aSessionIsAcceptedByIdAndComesInOrderToItsHolderAlone() {
        send(session, "one");
        send(UUID.randomUUID().toString(), "of another");
        send(session, "two", "three");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            assertEquals(session, receiver.getSessionId());
            List<ServiceBusReceivedMessage> received = receive(receiver, 3);
            assertEquals(List.of("one", "two", "three"), bodies(received));
            // This SDK names the link by the session, so the same client would steal its own.
            try (ServiceBusSessionReceiverClient others = sessions()) {
                assertThrows(RuntimeException.class, () -> others.acceptSession(session));
            }
            received.forEach(receiver::complete);
        }
    }

    @Test
    void idsThatDifferInLetterCaseAreOneSession() {
        List<String> ids = List.of("Order-" + session, "ORDER-" + session, "order-" + session);
        ids.forEach(id -> send(id, id));
        String asked = "oRDER-" + session;
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(asked)) {
            assertEquals(asked, receiver.getSessionId());
            List<ServiceBusReceivedMessage> received = receive(receiver, 3);
            assertEquals(ids, received.stream().map(ServiceBusReceivedMessage::getSessionId).toList());
            receiver.setSessionState("known".getBytes());
            try (ServiceBusSessionReceiverClient others = sessions()) {
                assertThrows(RuntimeException.class, () -> others.acceptSession(ids.get(0)));
            }
            received.forEach(receiver::complete);
        }
        try (ServiceBusReceiverClient again = sessions.acceptSession(ids.get(1))) {
            assertArrayEquals("known".getBytes(), again.getSessionState());
            again.setSessionState(null);
        }
    }

    @Test
    void theNextSessionIsOneThatHasMessages() {
        send(session, "one");
        String accepted;
        do {
            try (ServiceBusReceiverClient receiver = sessions.acceptNextSession()) {
                accepted = receiver.getSessionId();
                ServiceBusReceivedMessage received = receiveOne(receiver);
                assertEquals(accepted, received.getSessionId());
                receiver.complete(received);
            }
        } while (!accepted.equals(session));
    }

    @Test
    void aStateSurvivesItsHolder() {
        byte[] state = {0, -1, 1};
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            assertNull(receiver.getSessionState());
            receiver.setSessionState(state);
        }
        // This SDK names the link by the session, and may go on closing it when the same client comes again.
        try (ServiceBusSessionReceiverClient others = sessions();
                ServiceBusReceiverClient receiver = acceptOnceFree(others)) {
            assertArrayEquals(state, receiver.getSessionState());
            receiver.setSessionState(null);
            assertNull(receiver.getSessionState());
            receiver.setSessionState(state);
            receiver.setSessionState(new byte[0]);
            assertNull(receiver.getSessionState());
        }
    }

    @Test
    void aRenewedSessionIsHeldLongerThanItsLock() {
        send(session, "one");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            ServiceBusReceivedMessage received = receiveOne(receiver);
            OffsetDateTime first = receiver.renewSessionLock();
            waitUntilPassed(first.minusSeconds(3));
            assertTrue(receiver.renewSessionLock().isAfter(first));
            waitUntilPassed(first);
            receiver.complete(received);
        }
    }

    /** A message has no lock of its own: it is locked for as long as its session. */
    @Test
    void aMessageIsLockedForAsLongAsItsSession() {
        OffsetDateTime end = OffsetDateTime.of(9999, 12, 31, 23, 59, 59, 999_000_000, ZoneOffset.UTC);
        send(session, "one");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(end, received.getLockedUntil());
            assertEquals(end, receiver.peekMessage(received.getSequenceNumber()).getLockedUntil());
            receiver.defer(received);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(received.getSequenceNumber());
            assertEquals(end, deferred.getLockedUntil());
            assertTrue(receiver.renewSessionLock().isBefore(OffsetDateTime.now().plusMinutes(1)));
            receiver.complete(deferred);
        }
    }

    /** What was settled once, the SDK does not settle again; so this is the lock of a holder that has gone. */
    @Test
    void aLockOfAnEarlierHolderIsALostMessageLockAndTheSessionGoesOn() {
        send(session, "one");
        ServiceBusReceivedMessage early;
        try (ServiceBusReceiverClient earlier = sessions.acceptSession(session)) {
            early = receiveOne(earlier);
        }
        try (ServiceBusSessionReceiverClient others = sessions();
                ServiceBusReceiverClient receiver = acceptOnceFree(others)) {
            ServiceBusException refused = assertThrows(ServiceBusException.class, () -> receiver.complete(early));
            assertEquals(ServiceBusFailureReason.MESSAGE_LOCK_LOST, refused.getReason());
            ServiceBusReceivedMessage received = receiveOne(receiver);
            assertEquals(early.getSequenceNumber(), received.getSequenceNumber());
            receiver.complete(received);
        }
    }

    @Test
    void anIdleSessionIsFreeHalfASecondAfterItsLock() throws Exception {
        try (VirtualBroker broker = new VirtualBroker();
            ServiceBusSessionReceiverClient holder = sessions(broker.connectionString, "sessions");
            ServiceBusSessionReceiverClient others = sessions(broker.connectionString, "sessions")) {
            broker.freeze();
            holder.acceptSession(session);
            for (String pause : List.of("PT5M", "PT0.499S")) {
                broker.advance(pause);
                RuntimeException held = assertThrows(RuntimeException.class, () -> others.acceptSession(session));
                assertTrue(held.getMessage().contains("cannot be accepted"), held::getMessage);
            }
            broker.advance("PT0.001S");
            assertEquals(session, others.acceptSession(session).getSessionId());
        }
    }

    @Test
    void anAbandonedMessageComesBeforeThoseBehindIt() {
        send(session, "one", "two");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            receiver.abandon(receiveOne(receiver));
            List<ServiceBusReceivedMessage> received = receive(receiver, 2);
            assertEquals(List.of("one", "two"), bodies(received));
            received.forEach(receiver::complete);
        }
    }

    @Test
    void deferredAndPeekedMessagesAreThoseOfTheSession() {
        send(session, "one");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session)) {
            ServiceBusReceivedMessage received = receiveOne(receiver);
            receiver.defer(received);
            assertEquals(List.of("one"), bodies(receiver.peekMessages(10, 1).stream().toList()));
            receiver.complete(receiver.receiveDeferredMessage(received.getSequenceNumber()));
            assertEquals(0, receiver.peekMessages(10, 1).stream().count());
        }
    }

    @Test
    void deadLettersAreReceivedWithoutASession() {
        send(session, "one");
        try (ServiceBusReceiverClient receiver = sessions.acceptSession(session); Queue queue = Queue.of("sessions")) {
            receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions().setDeadLetterReason("why"));
            ServiceBusReceivedMessage dead;
            do {
                dead = queue.takeDead();
            } while (!dead.getSessionId().equals(session));
            assertEquals("why", dead.getDeadLetterReason());
        }
    }
}
