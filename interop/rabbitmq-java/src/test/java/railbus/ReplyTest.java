package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.rabbitmq.client.amqp.Message;
import com.rabbitmq.client.amqp.Requester;
import com.rabbitmq.client.amqp.Responder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Request and reply, with a reply queue that the broker makes for the requester. */
class ReplyTest {
    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aRequesterGetsItsReplyDirectly() throws Exception {
        try (Client requesting = new Client(); Client responding = new Client()) {
            String queue = responding.declare();
            try (Responder responder = responding.connection.responderBuilder()
                    .requestQueue(queue)
                    .handler((context, request) -> context.message(bytes("reply to " + Client.text(request))))
                    .build();
                Requester requester = requesting.connection.requesterBuilder()
                    .requestAddress().queue(queue).requester().build()) {
                for (String body : new String[] {"one", "two"}) {
                    Message reply = requester.publish(requester.message(bytes(body)))
                        .get(Client.PATIENCE_SECONDS, TimeUnit.SECONDS);
                    assertEquals("reply to " + body, Client.text(reply));
                }
            }
        }
    }
}
