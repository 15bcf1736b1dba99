package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.camel.CamelExecutionException;
import org.apache.camel.component.amqp.AMQPComponent;
import org.apache.camel.impl.DefaultCamelContext;
import org.junit.jupiter.api.Test;

/** A port where nothing listens. `setup` runs it, since it needs no broker. */
class NoBrokerTest {
    @Test
    void aProducerSaysThatNothingListens() throws Exception {
        try (DefaultCamelContext context = new DefaultCamelContext()) {
            context.addComponent("amqp", AMQPComponent.amqpComponent("amqp://127.0.0.1:1"));
            context.start();
            assertThrows(
                    CamelExecutionException.class,
                    () -> context.createProducerTemplate().sendBody("amqp:queue:queue", "body"));
        }
    }
}
