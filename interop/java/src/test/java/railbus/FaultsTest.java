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
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says. Each effect happens
 * once, and to two operations in a row where the second one waits for the first: then it is the second that
 * counts. Tries is how often the broker has seen it, so 2 is one retry; messages is how many are in the queue
 * then. With RAILBUS_UPDATE_FAULTS the table is written anew.
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
        new Effect("detach: detach-forced", "{\"detach\": \"detach-forced\"}"),
        new Effect("end: internal-error", "{\"end\": \"internal-error\"}"),
        new Effect("close: connection-forced", "{\"close\": \"connection-forced\"}"),
        new Effect("expire-token", "\"expire-token\""),
        new Effect("disconnect: before", "{\"disconnect\": \"before\"}"),
        new Effect("disconnect: after", "{\"disconnect\": \"after\"}"),
        new Effect("delay-ms: 50", "{\"delay-ms\": 50}"),
        new Effect("throttle-per-second: 20", "{\"throttle-per-second\": 20}", Seen.IN_BOTH, 2),
        new Effect("withhold-credit-ms: 50", "{\"withhold-credit-ms\": 50}", Seen.IN_SENDS, 2),
        new Effect("lose-lock", "\"lose-lock\"", Seen.IN_COMPLETIONS, 1),
        new Effect("deliver-again", "\"deliver-again\"", Seen.IN_COMPLETIONS, 1));

    /** Where an effect is seen. */
    private enum Seen { IN_BOTH, IN_SENDS, IN_COMPLETIONS }

    /** An effect; its count is 2 where the first operation takes its turn or the credit, and the second one waits. */
    private record Effect(String shown, String json, Seen seen, int count) {
        Effect(String shown, String json) {
            this(shown, json, Seen.IN_BOTH, 1);
        }

        static Effect refuse(String error) {
            return new Effect("refuse: " + error, "{\"refuse\": \"" + error + "\"}");
        }
    }

    /** An operation on the message of an index. */
    private interface Operation {
        void run(int index);
    }

    private record Result(String shown, int tries, long messages) {
        @Override
        public String toString() {
            return "%s | %d | %d".formatted(shown, tries, messages);
        }
    }

    /** After some effects the SDK waits for seconds before it tries again or gives up. */
    @Test
    @Timeout(600)
    void eachEffectIsShownAsTheDocumentSays() throws Exception {
        StringBuilder found = new StringBuilder(HEAD);
        try (VirtualBroker broker = new VirtualBroker()) {
            for (Effect effect : EFFECTS) {
                String sent = effect.seen == Seen.IN_COMPLETIONS ? " |  | " : ofSend(broker, effect).toString();
                String completed = effect.seen == Seen.IN_SENDS ? " |  | " : ofComplete(broker, effect).toString();
                found.append("| `%s` | %s | %s |\n".formatted(effect.shown, sent, completed));
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

    private static Result ofSend(VirtualBroker broker, Effect effect) throws Exception {
        try (ServiceBusSenderClient sender = builder(broker).sender().queueName("orders").buildClient()) {
            // The first message opens the link.
            sender.sendMessage(message("body"));
            try (ServiceBusReceiverClient receiver = builder(broker).receiver().queueName("orders")
                .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
                receiveOne(receiver);
            }
            Result all = result(broker, effect, "send", index -> sender.sendMessage(message("body")));
            return new Result(all.shown, all.tries, all.messages - effect.count + 1);
        }
    }

    private static Result ofComplete(VirtualBroker broker, Effect effect) throws Exception {
        try (ServiceBusSenderClient sender = builder(broker).sender().queueName("orders").buildClient();
             ServiceBusReceiverClient receiver = receiver(broker)) {
            List<ServiceBusReceivedMessage> received = new ArrayList<>();
            while (received.size() < effect.count) {
                sender.sendMessage(message("body"));
                received.add(receiveOne(receiver));
            }
            return result(broker, effect, "complete", index -> receiver.complete(received.get(index)));
        }
    }

    /** What is seen of the last of the operations. */
    private static Result result(VirtualBroker broker, Effect effect, String name, Operation operation)
        throws Exception {
        ask(broker, "PUT", "faults", """
            {"faults": [{"name": "once", "match": {"operations": ["%s"], "times": %d}, "effect": %s}]}
            """.formatted(name, effect.count, effect.json));
        int last = effect.count - 1;
        for (int index = 0; index < last; index++) {
            operation.run(index);
        }
        String shown = "nothing";
        try {
            operation.run(last);
        } catch (ServiceBusException error) {
            shown = "`" + error.getReason() + "`";
        } catch (RuntimeException error) {
            shown = "`" + error.getClass().getSimpleName() + "`";
        }
        int tries = ask(broker, "GET", "faults", "").at("/faults/0/matched").asInt() - last;
        ask(broker, "DELETE", "faults", "");
        long left;
        try (ServiceBusReceiverClient receiver = receiver(broker)) {
            left = receiver.peekMessages(100).stream().count();
        }
        ask(broker, "POST", "reset", "");
        return new Result(shown, tries, left);
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
