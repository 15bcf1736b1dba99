package railbus;

import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
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
        return makesEntities()
                ? azure(clientId, new ServiceBusJmsConnectionFactorySettings())
                : qpid(clientId, address());
    }

    /**
     * A factory whose consumers hold this many messages ready. With 0 they ask the broker when they are asked. What
     * they do unless told differs: Qpid JMS prefetches 1,000 messages and azure-servicebus-jms none.
     */
    static ConnectionFactory prefetching(String clientId, int messages) {
        return configured(clientId, Map.of("jms.prefetchPolicy.all", String.valueOf(messages)));
    }

    /** A factory with options that both clients know by these names. */
    static ConnectionFactory configured(String clientId, Map<String, String> options) {
        if (makesEntities()) {
            // The settings add to the map.
            return azure(clientId, new ServiceBusJmsConnectionFactorySettings(new HashMap<>(options)));
        }
        return qpid(
                clientId,
                options.entrySet().stream()
                        .map(option -> option.getKey() + "=" + option.getValue())
                        .collect(Collectors.joining("&", address() + "?", "")));
    }

    /**
     * A factory whose connections connect again when they are lost, or do not. What they do unless told differs:
     * azure-servicebus-jms connects again and Qpid JMS does not.
     */
    static ConnectionFactory reconnecting(String clientId, boolean again) {
        if (makesEntities()) {
            var settings = new ServiceBusJmsConnectionFactorySettings();
            settings.setShouldReconnect(again);
            return azure(clientId, settings);
        }
        return qpid(clientId, again ? "failover:(" + address() + ")" : address());
    }

    private static ConnectionFactory azure(String clientId, ServiceBusJmsConnectionFactorySettings settings) {
        String broker = connectionString(System.getenv("RAILBUS_ADDRESS"));
        ServiceBusJmsConnectionFactory factory = new ServiceBusJmsConnectionFactory(broker, settings);
        factory.setClientId(clientId);
        return factory;
    }

    private static ConnectionFactory qpid(String clientId, String uri) {
        JmsConnectionFactory factory = new JmsConnectionFactory(RULE, KEY, uri);
        factory.setClientID(clientId);
        return factory;
    }

    private static String address() {
        return "amqps://" + System.getenv("RAILBUS_ADDRESS") + ":5671";
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

    /** Sends each text as a message. */
    static void send(JMSContext context, String queue, String... texts) {
        Queue to = context.createQueue(queue);
        for (String text : texts) {
            context.createProducer().send(to, text);
        }
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

    /** Asserts that an exception or one of its causes says this, as the condition of a refusal. */
    static void assertSays(String condition, Throwable exception) {
        if (!says(condition, exception)) {
            throw new AssertionError("it does not say " + condition, exception);
        }
    }

    /** Whether an exception or one of its causes says this. */
    static boolean says(String text, Throwable exception) {
        for (Throwable cause = exception; cause != null; cause = cause.getCause()) {
            if (String.valueOf(cause.getMessage()).contains(text)) {
                return true;
            }
        }
        return false;
    }

    /** Closes what the broker has ended, which the clients may report once more. */
    static void closeFailed(JMSContext context) {
        try {
            context.close();
        } catch (JMSRuntimeException reported) {
            // The test has seen it.
        }
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
