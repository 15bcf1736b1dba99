package railbus;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A broker of one's own whose clock a test moves: {@code railbus serve --ephemeral --virtual-clock}. What is
 * here is all that a project needs to copy.
 */
final class VirtualBroker implements AutoCloseable {
    private static final Pattern READY =
        Pattern.compile("railbus ready listen=([^, ]+).* connection-string=\"([^\"]+)\"");

    final String connectionString;
    private final Process process;
    private final String address;

    VirtualBroker() throws IOException {
        this("clock.json");
    }

    /** With the entities of a file, and with more options. */
    VirtualBroker(String file, String... options) throws IOException {
        String entities = Path.of(System.getProperty("basedir"), "..", file).toString();
        List<String> command = new ArrayList<>(List.of(System.getenv("RAILBUS_BIN"), "serve", "--ephemeral",
            "--virtual-clock", "--listen", "127.0.0.1:0", "--entities", entities));
        command.addAll(List.of(options));
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        BufferedReader output = process.inputReader();
        Matcher ready = READY.matcher(String.valueOf(output.readLine()));
        if (!ready.matches()) {
            close();
            throw new IllegalStateException("the broker did not become ready");
        }
        address = ready.group(1);
        connectionString = ready.group(2);
    }

    /** Lets time pass, such as {@code PT5M}; returns when all that became due has happened. */
    void advance(String duration) throws IOException, InterruptedException {
        setClock("{\"advance\": \"" + duration + "\"}");
    }

    /** Stops the clock until it is advanced, so that a lock lasts however slow the test is. */
    void freeze() throws IOException, InterruptedException {
        setClock("{\"freeze\": true}");
    }

    /** Where the broker has that path over HTTP. */
    URI uri(String path) {
        return URI.create("http://" + address + path);
    }

    private void setClock(String change) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(uri("/$railbus/clock"))
            .POST(HttpRequest.BodyPublishers.ofString(change)).build();
        HttpResponse<String> answer =
            HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IllegalStateException(answer.body());
        }
    }

    @Override
    public void close() {
        process.destroy();
        process.onExit().join();
    }
}
