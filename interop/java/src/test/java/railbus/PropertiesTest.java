package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static railbus.Queue.message;

import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.qpid.proton.amqp.Binary;
import org.apache.qpid.proton.amqp.Decimal128;
import org.apache.qpid.proton.amqp.Decimal32;
import org.apache.qpid.proton.amqp.Decimal64;
import org.apache.qpid.proton.amqp.Symbol;
import org.apache.qpid.proton.amqp.UnsignedByte;
import org.apache.qpid.proton.amqp.UnsignedInteger;
import org.apache.qpid.proton.amqp.UnsignedLong;
import org.apache.qpid.proton.amqp.UnsignedShort;
import org.junit.jupiter.api.Test;

/** What a message carries comes back as it was sent. */
class PropertiesTest {
    private static final Map<String, Object> EVERY_TYPE = new LinkedHashMap<>();

    static {
        EVERY_TYPE.put("null", null);
        EVERY_TYPE.put("true", true);
        EVERY_TYPE.put("false", false);
        EVERY_TYPE.put("byte", Byte.MIN_VALUE);
        EVERY_TYPE.put("short", Short.MIN_VALUE);
        EVERY_TYPE.put("int small", -1);
        EVERY_TYPE.put("int", Integer.MIN_VALUE);
        EVERY_TYPE.put("long small", -1L);
        EVERY_TYPE.put("long", Long.MIN_VALUE);
        EVERY_TYPE.put("ubyte", UnsignedByte.valueOf((byte) -1));
        EVERY_TYPE.put("ushort", UnsignedShort.valueOf((short) -1));
        EVERY_TYPE.put("uint zero", UnsignedInteger.ZERO);
        EVERY_TYPE.put("uint", UnsignedInteger.MAX_VALUE);
        EVERY_TYPE.put("ulong zero", UnsignedLong.ZERO);
        EVERY_TYPE.put("ulong", UnsignedLong.valueOf("18446744073709551615"));
        EVERY_TYPE.put("float", 1.5f);
        EVERY_TYPE.put("double", 1.0000000000000002);
        EVERY_TYPE.put("decimal32", new Decimal32(0x22500000));
        EVERY_TYPE.put("decimal64", new Decimal64(0x2238000000000001L));
        EVERY_TYPE.put("decimal128", new Decimal128(0x2208000000000000L, 0x10f447L));
        EVERY_TYPE.put("char", '☃');
        EVERY_TYPE.put("date", new Date(1709209815250L));
        EVERY_TYPE.put("uuid", UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"));
        EVERY_TYPE.put("binary", new Binary(new byte[] {0, 1, -2, -1}));
        EVERY_TYPE.put("string", "naïve ☃ 𝄞");
        EVERY_TYPE.put("empty", "");
        EVERY_TYPE.put("long string", "s".repeat(300));
        EVERY_TYPE.put("symbol", Symbol.valueOf("a-symbol"));
        EVERY_TYPE.put("uri", URI.create("sb://somewhere/queue?a=b"));
        EVERY_TYPE.put("duration", Duration.ofMillis(61500));
        EVERY_TYPE.put("moment", OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 250_000_000, ZoneOffset.UTC));
    }

    @Test
    void applicationPropertiesOfEveryTypeComeBackEqual() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("body");
            // The SDK replaces values in the map it is given by its wire types.
            sent.getApplicationProperties().putAll(EVERY_TYPE);
            queue.send(sent);
            Map<String, Object> received = queue.take(1).get(0).getApplicationProperties();
            assertEquals(EVERY_TYPE.keySet(), received.keySet());
            EVERY_TYPE.forEach((name, value) -> assertEquals(value, received.get(name), name));
        }
    }

    @Test
    void messagePropertiesComeBackEqual() {
        try (Queue queue = Queue.cleared("plain")) {
            ServiceBusMessage sent = message("text").setCorrelationId("the request").setSubject("orders")
                .setContentType("application/json; charset=utf-8").setTo("somewhere").setReplyTo("the reply queue")
                .setReplyToSessionId("reply session").setSessionId("session").setPartitionKey("session")
                .setTimeToLive(Duration.ofMinutes(10));
            queue.send(sent);
            ServiceBusReceivedMessage received = queue.take(1).get(0);
            List<Function<ServiceBusMessage, Object>> properties = List.of(ServiceBusMessage::getMessageId,
                ServiceBusMessage::getCorrelationId, ServiceBusMessage::getSubject, ServiceBusMessage::getContentType,
                ServiceBusMessage::getTo, ServiceBusMessage::getReplyTo, ServiceBusMessage::getReplyToSessionId,
                ServiceBusMessage::getSessionId, ServiceBusMessage::getPartitionKey, ServiceBusMessage::getTimeToLive);
            ServiceBusMessage copy = new ServiceBusMessage(received);
            for (Function<ServiceBusMessage, Object> property : properties) {
                assertEquals(property.apply(sent), property.apply(copy));
            }
        }
    }

    @Test
    void bodiesOfEveryKindComeBackEqual() {
        byte[] data = "data".getBytes(StandardCharsets.UTF_8);
        try (Queue queue = Queue.cleared("plain")) {
            queue.send(Stream.of(AmqpMessageBody.fromData(data), AmqpMessageBody.fromSequence(List.of("a", 2, true)),
                AmqpMessageBody.fromValue("value")).map(ServiceBusMessage::new).toArray(ServiceBusMessage[]::new));
            List<AmqpMessageBody> bodies =
                queue.take(3).stream().map(received -> received.getRawAmqpMessage().getBody()).toList();
            assertArrayEquals(data, bodies.get(0).getFirstData());
            assertEquals(List.of("a", 2, true), bodies.get(1).getSequence());
            assertEquals("value", bodies.get(2).getValue());
        }
    }
}
