package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import org.apache.qpid.proton.Proton;
import org.apache.qpid.proton.amqp.messaging.Accepted;
import org.apache.qpid.proton.amqp.messaging.Source;
import org.apache.qpid.proton.amqp.messaging.Target;
import org.apache.qpid.proton.engine.Connection;
import org.apache.qpid.proton.engine.Delivery;
import org.apache.qpid.proton.engine.Sasl;
import org.apache.qpid.proton.engine.Sender;
import org.apache.qpid.proton.engine.Session;
import org.apache.qpid.proton.engine.Transport;
import org.apache.qpid.proton.message.Message;

/** Sends what the SDK does not: by the AMQP engine under it, with SASL PLAIN. */
final class PlainSender implements AutoCloseable {
    private final Socket socket;
    private final Transport transport = Proton.transport();
    private final Sender sender;

    PlainSender(String queue) throws IOException {
        socket = new Socket(System.getenv("RAILBUS_HOST"), Integer.parseInt(System.getenv("RAILBUS_PORT")));
        socket.setSoTimeout((int) Queue.PATIENCE.toMillis());
        Sasl sasl = transport.sasl();
        sasl.client();
        sasl.plain("RootManageSharedAccessKey", "SAS_KEY_VALUE");
        Connection connection = Proton.connection();
        connection.setContainer("plain");
        transport.bind(connection);
        connection.open();
        Session session = connection.session();
        session.open();
        Target target = new Target();
        target.setAddress(queue);
        sender = session.sender("plain");
        sender.setSource(new Source());
        sender.setTarget(target);
        sender.open();
        exchangeUntil(() -> sender.getCredit() > 0);
    }

    /** Sends a message, which is accepted. */
    void send(Message message) throws IOException {
        byte[] encoded = new byte[2 << 20];
        int size = message.encode(encoded, 0, encoded.length);
        Delivery delivery = sender.delivery(new byte[] {1});
        sender.send(encoded, 0, size);
        sender.advance();
        exchangeUntil(() -> delivery.getRemoteState() != null);
        assertEquals(Accepted.class, delivery.getRemoteState().getClass(), delivery.getRemoteState()::toString);
        delivery.settle();
    }

    private void exchangeUntil(BooleanSupplier condition) throws IOException {
        while (true) {
            for (int pending; (pending = transport.pending()) > 0; transport.pop(pending)) {
                byte[] bytes = new byte[pending];
                transport.head().get(bytes);
                socket.getOutputStream().write(bytes);
            }
            if (condition.getAsBoolean()) {
                return;
            }
            ByteBuffer input = transport.tail();
            byte[] bytes = new byte[input.remaining()];
            int count = socket.getInputStream().read(bytes);
            if (count < 0) {
                throw new IOException("the broker closed the connection: " + transport.getCondition());
            }
            input.put(bytes, 0, count);
            transport.process();
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
