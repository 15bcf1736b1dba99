package railbus.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Requests under {@code /$railbus/} of a broker. */
final class Api {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    private Api() {}

    /**
     * What the broker answers, in JSON.
     *
     * @throws IllegalArgumentException if the broker refuses the request
     */
    static String request(String address, String method, String path, String body, String... headers) {
        var request = HttpRequest.newBuilder(URI.create("http://" + address + "/$railbus/" + path));
        request.method(method, HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        try {
            var answer = CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() >= 300) {
                throw new IllegalArgumentException(answer.body());
            }
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while the broker answers", error);
        }
    }
}
