package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import org.junit.jupiter.api.Test;

/** The virtual clock: a day's time to live and a lock of five minutes, without sleeping. */
class ClockTest {
    @Test
    void aMessageExpiresWhenItsDayHasPassed() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = orders(broker)) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            broker.advance("P1D");
            ServiceBusReceivedMessage dead = queue.takeDead();
            assertEquals(sent.getMessageId(), dead.getMessageId());
            assertEquals("TTLExpiredException", dead.getDeadLetterReason());
        }
    }

    @Test
    void aLockIsLostWhenItsFiveMinutesHavePassed() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = orders(broker)) {
            ServiceBusMessage sent = message("body");
            queue.send(sent);
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage late = receiveOne(receiver);
            broker.advance("PT5M");
            ServiceBusException lost = assertThrows(ServiceBusException.class, () -> receiver.complete(late));
            assertEquals(ServiceBusFailureReason.MESSAGE_LOCK_LOST, lost.getReason());
            ServiceBusReceivedMessage again = receiveOne(receiver);
            assertEquals(sent.getMessageId(), again.getMessageId());
            assertEquals(1, again.getDeliveryCount());
            receiver.complete(again);
        }
    }

    @Test
    void aLockThatWasRenewedLastsFromItsRenewal() throws Exception {
        try (VirtualBroker broker = new VirtualBroker(); Queue queue = orders(broker)) {
            queue.send(message("body"));
            ServiceBusReceiverClient receiver = queue.receiver();
            ServiceBusReceivedMessage held = receiveOne(receiver);
            broker.advance("PT4M");
            receiver.renewMessageLock(held);
            broker.advance("PT4M");
            receiver.complete(held);
            queue.assertEmpty();
        }
    }

    private static Queue orders(VirtualBroker broker) {
        return new Queue("orders", broker.connectionString);
    }
}
