package railbus;

import com.azure.json.JsonProviders;
import com.azure.json.JsonReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** The broker's HTTP interface: queues of a test's own, and connections by their client id. */
final class Broker {
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private Broker() {}

    /** A queue that nothing else uses, until it is closed. Its locks last five seconds. */
    static final class OwnQueue implements AutoCloseable {
        final String name = "own-" + UUID.randomUUID();

        OwnQueue(String... properties) {
            String all = String.join(", ", properties);
            String body = "{\"lock-duration\": \"PT5S\"" + (all.isEmpty() ? "" : ", " + all) + "}";
            expect(201, request("PUT", "entities/" + name, body));
        }

        /** The messages in it, as the interface describes them. */
        List<Map<String, Object>> messages() {
            return messages("active");
        }

        /** Those of one part: {@code scheduled}, {@code deferred} and {@code dead-letter} are others. */
        List<Map<String, Object>> messages(String part) {
            return list(json("entities/" + name + "/messages?count=1000&part=" + part), "messages");
        }

        /** Changes a property, and leaves the others. */
        void change(String property) {
            expect(200, request("PATCH", "entities/" + name, "{" + property + "}"));
        }

        void delete() {
            expect(200, request("DELETE", "entities/" + name, null));
        }

        /** Deletes the queue, unless the test has. */
        @Override
        public void close() {
            request("DELETE", "entities/" + name, null);
        }
    }

    /** Waits until this many deliveries of a queue wait unsettled at the client. */
    static void awaitUnsettled(String clientId, OwnQueue queue, int count) {
        long deadline = System.nanoTime() + Client.PATIENCE_MS * 1_000_000;
        long unsettled = -1;
        while (unsettled != count) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(unsettled + " deliveries are unsettled, and not " + count);
            }
            unsettled = list(connection(clientId), "links").stream()
                    .filter(link -> queue.name.equals(link.get("address")))
                    .mapToLong(link -> ((Number) link.get("unsettled")).longValue())
                    .sum();
        }
    }

    /** Has the broker close the connection of a client. */
    static void closeConnection(String clientId) {
        expect(202, request("DELETE", "connections/" + connection(clientId).get("id"), null));
    }

    private static Map<String, Object> connection(String clientId) {
        return list(json("connections?count=100"), "connections").stream()
                .filter(connection -> clientId.equals(connection.get("container-id")))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no connection of " + clientId));
    }

    private static HttpResponse<String> request(String method, String path, String body) {
        URI uri = URI.create("https://" + System.getenv("RAILBUS_ADDRESS") + ":5671/$railbus/" + path);
        HttpRequest request = HttpRequest.newBuilder(uri)
                .method(
                        method,
                        body == null
                                ? HttpRequest.BodyPublishers.noBody()
                                : HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            return HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException failed) {
            throw new AssertionError(failed);
        }
    }

    private static HttpResponse<String> expect(int status, HttpResponse<String> response) {
        if (response.statusCode() != status) {
            throw new AssertionError(response + " " + response.body());
        }
        return response;
    }

    private static Map<String, Object> json(String path) {
        String text = expect(200, request("GET", path, null)).body();
        try (JsonReader reader = JsonProviders.createReader(text)) {
            return reader.readMap(JsonReader::readUntyped);
        } catch (IOException failed) {
            throw new AssertionError(failed);
        }
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> list(Map<String, Object> of, String name) {
        return (List<Map<String, Object>>) of.get(name);
    }
}
