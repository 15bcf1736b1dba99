package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.eventually;
import static railbus.Queue.message;
import static railbus.Queue.messages;
import static railbus.Queue.receive;
import static railbus.Queue.receiveOne;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Synchronous receivers that renew locks and fetch ahead by themselves. Each test has a broker of its own and moves
 * its clock.
 */
class RenewalTest extends OwnBroker {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    @Test
    void aReceiverKeepsTheLockOfItsMessage() throws Exception {
        broker.freeze();
        try (Queue queue = queue("brief"); ServiceBusReceiverClient receiver = builder().receiver()
                .queueName("brief").maxAutoLockRenewDuration(MINUTE).buildClient()) {
            queue.send(message("body"));
            ServiceBusReceivedMessage held = receiveOne(receiver);
            OffsetDateTime end = held.getLockedUntil();
            broker.advance("PT4S");
            eventually("the renewal", () -> held.getLockedUntil().isAfter(end));
            broker.advance("PT4S");
            receiver.complete(held);
            queue.assertEmpty();
        }
    }

    /** The SDK shows neither a session's lock nor that it renewed it, so the lock is outwaited in real time. */
    @Test
    void aSessionReceiverKeepsTheLockOfItsSession() {
        try (Queue queue = queue("brief-sessions"); ServiceBusSessionReceiverClient sessions = builder()
                .sessionReceiver().queueName("brief-sessions").maxAutoLockRenewDuration(MINUTE).buildClient()) {
            queue.send(message("body").setSessionId("a"));
            try (ServiceBusReceiverClient receiver = sessions.acceptSession("a")) {
                ServiceBusReceivedMessage held = receiveOne(receiver);
                Queue.outwaitBriefLock();
                receiver.complete(held);
                assertEquals(0, receiver.peekMessages(1, 1).stream().count());
            }
        }
    }

    @Test
    void prefetchedMessagesComeInOrderAndOnce() {
        try (Queue queue = queue("orders"); ServiceBusReceiverClient receiver = builder().receiver()
                .queueName("orders").maxAutoLockRenewDuration(Duration.ZERO).prefetchCount(20).buildClient()) {
            List<ServiceBusMessage> sent = messages(50);
            queue.sender().sendMessages(sent);
            List<ServiceBusReceivedMessage> received = receive(receiver, 50);
            assertEquals(sentIds(sent), receivedIds(received));
            received.forEach(receiver::complete);
            queue.assertEmpty();
        }
    }

    @Test
    void aSessionThatIsNotRenewedIsLostAndItsMessagesComeAgain() throws Exception {
        try (Queue queue = queue("sessions")) {
            queue.send(message("body").setSessionId("a"));
            for (int count = 0; count < 2; count++) {
                try (ServiceBusSessionReceiverClient sessions = builder().sessionReceiver().queueName("sessions")
                        .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
                        ServiceBusReceiverClient receiver = sessions.acceptSession("a")) {
                    assertEquals(count, receiveOne(receiver).getDeliveryCount());
                    broker.advance("PT5M");
                }
            }
        }
    }
}
