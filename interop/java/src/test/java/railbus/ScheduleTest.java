package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Scheduled messages: by operation and by property, seen in a peek, cancelled, received at their time. */
class ScheduleTest {
    /** A time so far ahead, in whole milliseconds as the wire has them. */
    private static OffsetDateTime in(long seconds) {
        return OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.MILLIS).plusSeconds(seconds);
    }

    @Test
    void scheduledMessagesComeAtTheirTimeAndCancelledOnesDoNot() {
        try (Queue queue = Queue.cleared("plain")) {
            OffsetDateTime due = in(4);
            ServiceBusMessage kept = message("kept");
            ServiceBusMessage cancelled = message("cancelled");
            ServiceBusMessage alone = message("alone");
            ServiceBusSenderClient sender = queue.sender();
            List<Long> numbers = new ArrayList<>();
            sender.scheduleMessages(List.of(kept, cancelled), due).forEach(numbers::add);
            numbers.add(sender.scheduleMessage(alone, due));
            List<ServiceBusReceivedMessage> peeked = queue.peek();
            assertEquals(numbers, peeked.stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList());
            for (ServiceBusReceivedMessage one : peeked) {
                assertEquals(ServiceBusMessageState.SCHEDULED, one.getState());
            }
            sender.cancelScheduledMessage(numbers.get(1));
            List<ServiceBusReceivedMessage> received = queue.take(2);
            assertEquals(sentIds(List.of(kept, alone)), receivedIds(received));
            for (ServiceBusReceivedMessage one : received) {
                assertTrue(due.isEqual(one.getScheduledEnqueueTime()));
                assertFalse(one.getEnqueuedTime().isBefore(due));
                assertTrue(one.getSequenceNumber() > numbers.get(2));
            }
            queue.assertEmpty();
        }
    }

    @Test
    void theSdkItselfRefusesToCancelANumberBelowZero() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusSenderClient sender = queue.sender();
            long number = sender.scheduleMessage(message("kept"), in(600));
            assertThrows(IllegalArgumentException.class, () -> sender.cancelScheduledMessage(-1));
            assertEquals(number, queue.peek().get(0).getSequenceNumber());
            sender.cancelScheduledMessage(number);
            queue.assertEmpty();
        }
    }

    @Test
    void messagesThatAreSentWithATimeComeByTime() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage second = message("second").setScheduledEnqueueTime(in(3));
            ServiceBusMessage first = message("first").setScheduledEnqueueTime(in(2));
            ServiceBusMessage past = message("past").setScheduledEnqueueTime(in(-60));
            queue.send(second, first, past);
            assertEquals(sentIds(List.of(past, first, second)), receivedIds(queue.take(3)));
        }
    }
}
