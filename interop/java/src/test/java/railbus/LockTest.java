package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.assertNothingComes;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;
import static railbus.Queue.waitUntilPassed;

import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Locks: what the SDK says when one has run out, and how renewal keeps one. */
class LockTest {
    @Test
    void settlingAfterTheLockRanOutIsLockLost() {
        try (Queue queue = Queue.cleared("shortlock")) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient late = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(late);
            waitUntilPassed(received.getLockedUntil());
            assertLockLost(() -> late.complete(received));
            ServiceBusReceiverClient nextOne = queue.receiver();
            ServiceBusReceivedMessage again = receiveOne(nextOne);
            assertEquals(sent.getMessageId(), again.getMessageId());
            assertEquals(1, again.getDeliveryCount());
            nextOne.complete(again);
            queue.assertEmpty();
        }
    }

    @Test
    void aLateSettlementDoesNotTouchTheNextHolder() {
        try (Queue queue = Queue.cleared("shortlock")) {
            queue.send(message("body"));
            ServiceBusReceiverClient late = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(late);
            ServiceBusReceiverClient nextOne = queue.receiver();
            ServiceBusReceivedMessage again = receiveOne(nextOne);
            assertLockLost(() -> late.abandon(received));
            assertEquals(1, queue.peek().size());
            nextOne.complete(again);
            queue.assertEmpty();
        }
    }

    @Test
    void aRenewedLockOutlivesTheFirstOne() {
        try (Queue queue = Queue.cleared("shortlock")) {
            queue.send(message("body"));
            ServiceBusReceiverClient holder = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(holder);
            OffsetDateTime first = received.getLockedUntil();
            ServiceBusReceiverClient other = queue.receiver();
            for (OffsetDateTime renewed = first; renewed.isBefore(first.plusSeconds(2));) {
                assertNothingComes(other);
                renewed = holder.renewMessageLock(received);
            }
            waitUntilPassed(first);
            assertNothingComes(other);
            holder.complete(received);
            queue.assertEmpty();
        }
    }

    @Test
    void renewingALockThatRanOutIsLockLost() {
        try (Queue queue = Queue.cleared("shortlock")) {
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage received = receiveOne(receiver);
            waitUntilPassed(received.getLockedUntil());
            assertLockLost(() -> receiver.renewMessageLock(received));
        }
    }

    private static void assertLockLost(Executable settlement) {
        ServiceBusException refused = assertThrows(ServiceBusException.class, settlement);
        assertEquals(ServiceBusFailureReason.MESSAGE_LOCK_LOST, refused.getReason());
    }
}
