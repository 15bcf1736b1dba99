package railbus;

import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import org.apache.qpid.jms.JmsConnectionFactory;

/** The JMS client that the suite runs with, by {@code RAILBUS_JMS_CLIENT}. */
final class Client {
    static final String RULE = "RootManageSharedAccessKey";
    static final String KEY = "SAS_KEY_VALUE";
    static final long PATIENCE_MS = 30_000;
    /** How long nothing must come for nothing to be there. */
    static final long LULL_MS = 500;

    private Client() {}

    /** Whether it says that it makes entities by attaching. */
    static boolean makesEntities() {
        return !"qpid".equals(System.getenv("RAILBUS_JMS_CLIENT"));
    }

    static ConnectionFactory factory(String clientId) {
        String host = System.getenv("RAILBUS_ADDRESS");
        if (makesEntities()) {
            ServiceBusJmsConnectionFactory factory = new ServiceBusJmsConnectionFactory(
                    connectionString(host), new ServiceBusJmsConnectionFactorySettings());
            factory.setClientId(clientId);
            return factory;
        }
        JmsConnectionFactory factory = new JmsConnectionFactory(RULE, KEY, "amqps://" + host + ":5671");
        factory.setClientID(clientId);
        return factory;
    }

    static String connectionString(String host) {
        return "Endpoint=sb://" + host + "/;SharedAccessKeyName=" + RULE + ";SharedAccessKey=" + KEY;
    }

    /** A connection of a client id, or of none, that acknowledges by itself. */
    static JMSContext context(String clientId) {
        return factory(clientId).createContext(JMSContext.AUTO_ACKNOWLEDGE);
    }

    static JMSContext context(String clientId, int mode) {
        return factory(clientId).createContext(mode);
    }

    /** The text of the next message. */
    static String text(JMSConsumer consumer) {
        return consumer.receiveBody(String.class, PATIENCE_MS);
    }

    /** The next message, which must come. */
    static Message next(JMSConsumer consumer) {
        Message message = consumer.receive(PATIENCE_MS);
        if (message == null) {
            throw new AssertionError("no message came");
        }
        return message;
    }

    /** Removes what an earlier test has left in a queue. */
    static void empty(JMSContext context, String queue) {
        try (JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            while (consumer.receive(LULL_MS) != null) {
                // It is acknowledged.
            }
        }
    }
}
