package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.messages;

import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverAsyncClient;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The asynchronous clients with sessions: accepted by id or as the next one, with state, renewal and loss. */
class AsyncSessionsTest extends AsyncClients {
    @Test
    void aSessionIsAcceptedByIdAndComesInOrderToItsHolderAlone() {
        queue("sessions").sender().sendMessages(inSession("a", 3));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
        assertEquals("a", holder.getSessionId());
        // This SDK names the link by the session, so the same client would steal its own.
        AmqpException refused =
            assertThrows(AmqpException.class, () -> sessions().acceptSession("a").block(PATIENCE));
        assertTrue(refused.getMessage().contains("locked by another receiver"), refused::getMessage);
        List<String> received = holder.receiveMessages().concatMap(one -> holder.complete(one).thenReturn(one)).take(3)
            .map(one -> one.getBody().toString()).collectList().block(PATIENCE);
        assertEquals(List.of("number 0", "number 1", "number 2"), received);
    }

    @Test
    void idsThatDifferInLetterCaseAreOneSession() {
        List<String> ids = List.of("Order-1", "ORDER-1", "order-1");
        ids.forEach(id -> queue("sessions").sender().sendMessages(inSession(id, 1)));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("oRDER-1").block(PATIENCE));
        assertEquals("oRDER-1", holder.getSessionId());
        AmqpException refused =
            assertThrows(AmqpException.class, () -> sessions().acceptSession(ids.get(0)).block(PATIENCE));
        assertTrue(refused.getMessage().contains("locked by another receiver"), refused::getMessage);
        List<String> received = holder.receiveMessages().concatMap(one -> holder.complete(one).thenReturn(one)).take(3)
            .map(ServiceBusReceivedMessage::getSessionId).collectList().block(PATIENCE);
        assertEquals(ids, received);
    }

    @Test
    void theNextSessionIsTheOneWhoseFirstMessageIsOldest() {
        queue("sessions").sender().sendMessages(inSession("first", 1));
        queue("sessions").sender().sendMessages(inSession("second", 1));
        for (String expected : List.of("first", "second")) {
            ServiceBusReceiverAsyncClient holder = open(sessions().acceptNextSession().block(PATIENCE));
            assertEquals(expected, holder.getSessionId());
        }
    }

    @Test
    void aStateSurvivesItsHolder() throws Exception {
        byte[] state = {0, -1, 1};
        ServiceBusReceiverAsyncClient first = open(sessions().acceptSession("a").block(PATIENCE));
        assertTrue(first.getSessionState().blockOptional(PATIENCE).isEmpty());
        first.setSessionState(state).block(PATIENCE);
        // An idle session is free half a second after its lock.
        broker.advance("PT5M1S");
        ServiceBusReceiverAsyncClient second = open(sessions().acceptSession("a").block(PATIENCE));
        for (byte[] nothing : new byte[][] {null, {}}) {
            assertArrayEquals(state, second.getSessionState().block(PATIENCE));
            second.setSessionState(nothing).block(PATIENCE);
            assertTrue(second.getSessionState().blockOptional(PATIENCE).isEmpty());
            second.setSessionState(state).block(PATIENCE);
        }
    }

    @Test
    void aRenewedSessionIsHeldLongerThanItsLock() throws Exception {
        queue("sessions").sender().sendMessages(inSession("a", 1));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
        // The session is given back with its link, so the stream of messages stays open.
        ServiceBusReceivedMessage held = next(holder);
        broker.advance("PT4M");
        holder.renewSessionLock().block(PATIENCE);
        broker.advance("PT4M");
        holder.complete(held).block(PATIENCE);
        assertEquals(0, holder.peekMessages(1, 1).count().block(PATIENCE));
    }

    @Test
    void aSessionReceiverKeepsTheLockOfItsSession() {
        queue("brief-sessions").sender().sendMessages(inSession("a", 1));
        ServiceBusSessionReceiverAsyncClient renewing = open(builder().sessionReceiver().queueName("brief-sessions")
            .disableAutoComplete().maxAutoLockRenewDuration(Duration.ofMinutes(1)).buildAsyncClient());
        ServiceBusReceiverAsyncClient holder = open(renewing.acceptSession("a").block(PATIENCE));
        // The SDK shows neither a session's lock nor that it renewed it, so the lock is outwaited in real time.
        ServiceBusReceivedMessage held = next(holder);
        Queue.outwaitBriefLock();
        holder.complete(held).block(PATIENCE);
        assertEquals(0, holder.peekMessages(1, 1).count().block(PATIENCE));
    }

    @Test
    void aSessionThatIsNotRenewedIsLostAndItsMessagesComeAgain() throws Exception {
        queue("sessions").sender().sendMessages(inSession("a", 1));
        for (long count = 0; count < 2; count++) {
            ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
            assertEquals(count, next(holder).getDeliveryCount());
            broker.advance("PT5M");
        }
    }

    @Test
    void anAbandonedMessageComesBeforeThoseBehindIt() {
        queue("sessions").sender().sendMessages(inSession("a", 2));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
        List<String> received = holder.receiveMessages().concatMap(one ->
            (one.getDeliveryCount() == 0 && one.getBody().toString().equals("number 0") ? holder.abandon(one)
                : holder.complete(one)).thenReturn(one.getBody().toString())).take(3).collectList().block(PATIENCE);
        assertEquals(List.of("number 0", "number 0", "number 1"), received);
    }

    @Test
    void deferredAndPeekedMessagesAreThoseOfTheSession() {
        queue("sessions").sender().sendMessages(inSession("b", 1));
        queue("sessions").sender().sendMessages(inSession("a", 1));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
        List<String> sessionsSeen = holder.receiveMessages().concatMap(one -> holder.defer(one)
            .thenMany(holder.peekMessages(10, 1)).map(ServiceBusReceivedMessage::getSessionId).collectList()
            .flatMap(seen -> holder.receiveDeferredMessage(one.getSequenceNumber()).flatMap(holder::complete)
                .thenReturn(seen))).next().block(PATIENCE);
        assertEquals(List.of("a"), sessionsSeen);
    }

    @Test
    void aStreamOfASessionComesInOrder() {
        queue("sessions").sender().sendMessages(inSession("a", 10));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptNextSession().block(PATIENCE));
        List<String> received = holder.receiveMessages().concatMap(one -> holder.complete(one).thenReturn(one)).take(10)
            .map(one -> one.getBody().toString()).collectList().block(PATIENCE);
        assertEquals(IntStream.range(0, 10).mapToObj(number -> "number " + number).toList(), received);
    }

    @Test
    void deadLettersAreReceivedWithoutASession() {
        queue("sessions").sender().sendMessages(inSession("a", 1));
        ServiceBusReceiverAsyncClient holder = open(sessions().acceptSession("a").block(PATIENCE));
        holder.receiveMessages().concatMap(one -> holder.deadLetter(one).thenReturn(one)).next().block(PATIENCE);
        assertEquals("a", queue("sessions").takeDead().getSessionId());
    }
}
