package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static railbus.Queue.message;

import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * TLS, with AMQP or WebSocket inside. The JVM trusts the broker's certificate authority by
 * {@code javax.net.ssl.trustStore}, which {@code run} sets. Without {@code UseDevelopmentEmulator=true} this SDK
 * speaks TLS and takes no port from the connection string, so the port is said by {@code customEndpointAddress}.
 */
class TlsTest {
    private static ServiceBusClientBuilder builder(AmqpTransportType transport) {
        String plain = Queue.connectionString();
        String host = System.getenv("RAILBUS_HOST");
        String port = System.getenv("RAILBUS_PORT");
        String secured = plain.replace("UseDevelopmentEmulator=true;", "").replace(":" + port, "");
        assertNotEquals(plain, secured);
        return new ServiceBusClientBuilder()
            .connectionString(secured)
            .transportType(transport)
            .customEndpointAddress("https://" + host + ":" + port);
    }

    private static void exchange(AmqpTransportType transport, String suffix, byte[] body) {
        try (Queue queue = Queue.cleared(suffix);
            ServiceBusSenderClient sender = builder(transport).sender().queueName(queue.name).buildClient();
            ServiceBusReceiverClient receiver = builder(transport).receiver().queueName(queue.name).buildClient()) {
            sender.sendMessage(message(BinaryData.fromBytes(body)));
            ServiceBusReceivedMessage received = Queue.receiveOne(receiver);
            assertArrayEquals(body, received.getBody().toBytes());
            receiver.renewMessageLock(received);
            receiver.complete(received);
            assertEquals(0, queue.peek().size());
        }
    }

    @Test
    void aMessageGoesOverTls() {
        exchange(AmqpTransportType.AMQP, "plain", "within TLS".getBytes());
    }

    @Test
    void aMessageGoesOverWebSocketWithinTls() {
        exchange(AmqpTransportType.AMQP_WEB_SOCKETS, "plain", "within WebSocket within TLS".getBytes());
    }

    @ParameterizedTest
    @EnumSource(AmqpTransportType.class)
    void aLargeMessageGoesOverTls(AmqpTransportType transport) {
        byte[] body = new byte[200 << 10];
        new Random(7).nextBytes(body);
        exchange(transport, "large", body);
    }
}
