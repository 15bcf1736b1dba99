package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.Queue.receiveOne;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says. Each effect happens
 * once. Tries is how often the broker has seen the operation, so 2 is one retry; messages is how many are in
 * the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.
 */
class FaultsTest {
    private static final Path DOCUMENT = Path.of(System.getProperty("basedir"), "..", "..", "docs", "faults.md");
    private static final String TITLE = "### Java: azure-messaging-servicebus 7.17.20\n";
    private static final String HEAD = """
        | Effect | `send` | tries | messages | `complete` | tries | messages |
        |---|---|---|---|---|---|---|
        """;
    private static final List<Effect> EFFECTS = List.of(
        Effect.refuse("server-busy"), Effect.refuse("timeout"), Effect.refuse("quota-exceeded"),
        Effect.refuse("entity-disabled"), Effect.refuse("not-found"), Effect.refuse("unauthorized"),
        Effect.refuse("internal-error"),
        new Effect("disconnect: before", "{\"disconnect\": \"before\"}", false),
        new Effect("disconnect: after", "{\"disconnect\": \"after\"}", false),
        new Effect("delay-ms: 50", "{\"delay-ms\": 50}", false),
        new Effect("lose-lock", "\"lose-lock\"", true), new Effect("deliver-again", "\"deliver-again\"", true));

    /** An effect; one of locks can be had on a completion alone. */
    private record Effect(String shown, String json, boolean isOfLocks) {
        static Effect refuse(String error) {
            return new Effect("refuse: " + error, "{\"refuse\": \"" + error + "\"}", false);
        }
    }

    @Test
    void eachEffectIsShownAsTheDocumentSays() throws Exception {
        StringBuilder found = new StringBuilder(HEAD);
        try (VirtualBroker broker = new VirtualBroker()) {
            for (Effect effect : EFFECTS) {
                String sent = effect.isOfLocks ? " |  | " : ofSend(broker, effect);
                found.append("| `%s` | %s | %s |\n".formatted(effect.shown, sent, ofComplete(broker, effect)));
            }
        }
        String[] parts = Files.readString(DOCUMENT).split(TITLE, 2);
        if (System.getenv("RAILBUS_UPDATE_FAULTS") != null) {
            int next = parts[1].indexOf("\n### ");
            String rest = next < 0 ? "" : parts[1].substring(next);
            Files.writeString(DOCUMENT, parts[0] + TITLE + "\n" + found + rest);
        } else {
            assertTrue(parts[1].startsWith("\n" + found), found.toString());
        }
    }

    private static String ofSend(VirtualBroker broker, Effect effect) throws Exception {
        try (ServiceBusSenderClient sender = builder(broker).sender().queueName("orders").buildClient()) {
            // The first message opens the link.
            sender.sendMessage(message("body"));
            try (ServiceBusReceiverClient receiver = builder(broker).receiver().queueName("orders")
                .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
                receiveOne(receiver);
            }
            return result(broker, effect, "send", () -> sender.sendMessage(message("body")));
        }
    }

    private static String ofComplete(VirtualBroker broker, Effect effect) throws Exception {
        try (ServiceBusSenderClient sender = builder(broker).sender().queueName("orders").buildClient();
             ServiceBusReceiverClient receiver = receiver(broker)) {
            sender.sendMessage(message("body"));
            ServiceBusReceivedMessage received = receiveOne(receiver);
            return result(broker, effect, "complete", () -> receiver.complete(received));
        }
    }

    private static String result(VirtualBroker broker, Effect effect, String operation, Runnable run)
        throws Exception {
        ask(broker, "PUT", "faults", """
            {"faults": [{"name": "once", "match": {"operations": ["%s"], "times": 1}, "effect": %s}]}
            """.formatted(operation, effect.json));
        String shown = "nothing";
        try {
            run.run();
        } catch (ServiceBusException error) {
            shown = "`" + error.getReason() + "`";
        } catch (RuntimeException error) {
            shown = "`" + error.getClass().getSimpleName() + "`";
        }
        int tries = ask(broker, "GET", "faults", "").at("/faults/0/matched").asInt();
        ask(broker, "DELETE", "faults", "");
        long left;
        try (ServiceBusReceiverClient receiver = receiver(broker)) {
            left = receiver.peekMessages(100).stream().count();
        }
        ask(broker, "POST", "reset", "");
        return "%s | %d | %d".formatted(shown, tries, left);
    }

    private static ServiceBusReceiverClient receiver(VirtualBroker broker) {
        return builder(broker).receiver().queueName("orders").buildClient();
    }

    /** The retries of the SDK, with less time for each try and between them. */
    private static ServiceBusClientBuilder builder(VirtualBroker broker) {
        AmqpRetryOptions retries = new AmqpRetryOptions()
            .setDelay(Duration.ofMillis(50)).setTryTimeout(Duration.ofSeconds(5));
        return new ServiceBusClientBuilder().connectionString(broker.connectionString).retryOptions(retries);
    }

    private static JsonNode ask(VirtualBroker broker, String method, String path, String body) throws Exception {
        URI uri = broker.uri("/$railbus/namespaces/default/" + path);
        HttpRequest request = HttpRequest.newBuilder(uri)
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> answer =
            HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        return new ObjectMapper().readTree(answer.body());
    }
}
