package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.QueueBrowser;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** {@code QueueBrowser}: it shows the queue and takes nothing. */
class BrowserTest {
    private static List<Integer> browse(QueueBrowser browser) throws JMSException {
        List<Integer> numbers = new ArrayList<>();
        Enumeration<?> messages = browser.getEnumeration();
        while (messages.hasMoreElements()) {
            numbers.add(((Message) messages.nextElement()).getIntProperty("n"));
        }
        return numbers;
    }

    @Test
    void aBrowserShowsTheWholeQueueAndTakesNothing() throws JMSException {
        try (Broker broker = new Broker()) {
            broker.send(1, 2, 3);
            try (QueueBrowser browser = broker.session.createBrowser(broker.queue)) {
                assertEquals(List.of(1, 2, 3), browse(browser));
                assertEquals(List.of(1, 2, 3), browse(browser));
            }
            try (MessageConsumer consumer = broker.session.createConsumer(broker.queue)) {
                assertEquals(List.of(1, 2, 3), Broker.receive(consumer, 3));
            }
        }
    }

    @Test
    void anEmptyQueueIsBrowsedToItsEnd() throws JMSException {
        try (Broker broker = new Broker();
                QueueBrowser browser = broker.session.createBrowser(broker.queue)) {
            assertEquals(List.of(), browse(browser));
        }
    }

    @Test
    void aBrowserMayHaveASelector() throws JMSException {
        try (Broker broker = new Broker()) {
            broker.send(1, 2, 3, 4);
            try (QueueBrowser browser = broker.session.createBrowser(broker.queue, "JMSType = 'even'")) {
                assertEquals(List.of(2, 4), browse(browser));
            }
        }
    }

    @Test
    void aLongQueueIsBrowsedWhole() throws JMSException {
        try (Broker broker = new Broker()) {
            int[] numbers = new int[700];
            List<Integer> expected = new ArrayList<>();
            for (int n = 0; n < numbers.length; n++) {
                numbers[n] = n;
                expected.add(n);
            }
            broker.send(numbers);
            try (QueueBrowser browser = broker.session.createBrowser(broker.queue)) {
                assertEquals(expected, browse(browser));
            }
        }
    }
}
