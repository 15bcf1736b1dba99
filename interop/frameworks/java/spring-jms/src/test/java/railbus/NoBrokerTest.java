package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;
import org.springframework.jms.JmsException;
import org.springframework.jms.core.JmsTemplate;

/** A port where nothing listens. `setup` runs it, since it needs no broker. */
class NoBrokerTest {
    @Test
    void aTemplateSaysThatNothingListens() {
        JmsTemplate template = new JmsTemplate(new JmsConnectionFactory("amqp://127.0.0.1:1"));
        assertThrows(JmsException.class, () -> template.convertAndSend("queue", "body"));
    }
}
