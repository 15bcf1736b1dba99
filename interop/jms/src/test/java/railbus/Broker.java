package railbus;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/** One connection by SASL PLAIN with one session, and the queue of the suite, emptied. */
final class Broker implements AutoCloseable {
    static final long PATIENCE_MS = 30_000;
    /** How long nothing must come for nothing to be there. */
    static final long LULL_MS = 500;

    final Connection connection;
    final Session session;
    final Queue queue;

    Broker() throws JMSException {
        this(Session.CLIENT_ACKNOWLEDGE);
        try (MessageConsumer consumer = session.createConsumer(queue)) {
            while (true) {
                Message message = consumer.receive(LULL_MS);
                if (message == null) {
                    break;
                }
                message.acknowledge();
            }
        }
    }

    Broker(int acknowledgement) throws JMSException {
        connection = factory().createConnection("RootManageSharedAccessKey", "SAS_KEY_VALUE");
        connection.start();
        session = connection.createSession(false, acknowledgement);
        queue = session.createQueue("jms-plain");
    }

    /** The address of the broker, as the client is configured with it. */
    static String address(String host, String port) {
        return "amqp://" + host + ":" + port;
    }

    private static ConnectionFactory factory() {
        return new JmsConnectionFactory(address(System.getenv("RAILBUS_HOST"), System.getenv("RAILBUS_PORT")));
    }

    /** Sends a message for each number, which is its property {@code n} too. */
    void send(int... numbers) throws JMSException {
        try (MessageProducer producer = session.createProducer(queue)) {
            for (int n : numbers) {
                Message message = session.createTextMessage("message " + n);
                message.setIntProperty("n", n);
                message.setJMSType(n % 2 == 0 ? "even" : "odd");
                producer.send(message);
            }
        }
    }

    /** The numbers of exactly so many messages, which are acknowledged. */
    static List<Integer> receive(MessageConsumer consumer, int count) throws JMSException {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = consumer.receive(PATIENCE_MS);
            if (message == null) {
                throw new AssertionError("only " + numbers + " came");
            }
            numbers.add(message.getIntProperty("n"));
            message.acknowledge();
        }
        return numbers;
    }

    @Override
    public void close() throws JMSException {
        connection.close();
    }
}
