package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Message selectors, as JMS has them. */
class SelectorTest {
    @Test
    void aSelectorTakesWhatItSelectsAndLeavesTheRest() throws JMSException {
        try (Broker broker = new Broker()) {
            broker.send(1, 2, 3, 4, 5, 6);
            try (MessageConsumer choosy = broker.session.createConsumer(broker.queue, "n BETWEEN 2 AND 4")) {
                assertEquals(List.of(2, 3, 4), Broker.receive(choosy, 3));
                assertNull(choosy.receive(Broker.LULL_MS));
            }
            try (MessageConsumer other = broker.session.createConsumer(broker.queue)) {
                assertEquals(List.of(1, 5, 6), Broker.receive(other, 3));
            }
        }
    }

    @Test
    void aSelectorSeesTheHeaderFieldsOfJms() throws JMSException {
        try (Broker broker = new Broker()) {
            broker.send(1, 2, 3);
            String selector = "JMSType = 'even' AND JMSDeliveryMode = 'PERSISTENT' AND JMSPriority = 4";
            try (MessageConsumer choosy = broker.session.createConsumer(broker.queue, selector)) {
                assertEquals(List.of(2), Broker.receive(choosy, 1));
                assertNull(choosy.receive(Broker.LULL_MS));
            }
        }
    }

    @Test
    void twoConsumersWithSelectorsAndOneWithoutShareAQueue() throws JMSException {
        try (Broker broker = new Broker()) {
            MessageConsumer odd = broker.session.createConsumer(broker.queue, "JMSType = 'odd'");
            MessageConsumer even = broker.session.createConsumer(broker.queue, "n IN ('none') OR JMSType = 'even'");
            broker.send(1, 2, 3, 4);
            assertEquals(List.of(1, 3), Broker.receive(odd, 2));
            assertEquals(List.of(2, 4), Broker.receive(even, 2));
        }
    }

    @Test
    void receiveNoWaitWithASelectorIsAnsweredAtOnce() throws JMSException {
        try (Broker broker = new Broker()) {
            broker.send(1, 2);
            try (MessageConsumer choosy = broker.session.createConsumer(broker.queue, "n = 3")) {
                assertNull(choosy.receiveNoWait());
            }
        }
    }

    @Test
    void aSelectorThatTheBrokerRefusesIsAnInvalidSelector() throws JMSException {
        try (Broker broker = new Broker()) {
            // The client parses none; the broker is the one to say.
            JMSException refused =
                    assertThrows(JMSException.class, () -> broker.session.createConsumer(broker.queue, "n LIKE 5"));
            assertEquals(InvalidSelectorException.class, refused.getClass(), refused.toString());
        }
    }
}
