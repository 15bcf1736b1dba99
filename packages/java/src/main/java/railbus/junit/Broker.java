package railbus.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** A running broker: a process of its own that ends with this one, also when that is killed. */
public final class Broker implements AutoCloseable {
    private static final Pattern READY =
            Pattern.compile("railbus ready listen=([^, ]+).* connection-string=\"([^\"]+)\"");
    /** The settings of a broker are its options, whatever is configured on the machine. */
    private static final Pattern IGNORED = Pattern.compile("RAILBUS_.*|CONFIG_PATH|EMULATOR_HTTP_PORT");

    private final Process process;
    private final RandomAccessFile log;
    private final String address;
    private final String connectionString;

    private Broker(Process process, RandomAccessFile log) throws IOException {
        this.process = process;
        this.log = log;
        var output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        var line = output.readLine();
        var ready = READY.matcher(line == null ? "" : line);
        if (!ready.lookingAt()) {
            var code = stop();
            throw new IOException("railbus ended with exit code " + code + " before it was ready:\n" + log(0));
        }
        address = ready.group(1);
        connectionString = ready.group(2);
    }

    /** Starts a broker on a free port with a temporary store; {@code options} are those of {@code railbus serve}. */
    public static Broker start(List<String> options) throws IOException {
        var command = new ArrayList<>(List.of(Program.find().toString(), "serve"));
        command.addAll(List.of("--ephemeral", "--virtual-clock", "--exit-on-stdin-close", "--config", "/dev/null"));
        if (!options.contains("--listen")) {
            command.addAll(List.of("--listen", "127.0.0.1:0"));
        }
        command.addAll(options);
        var file = Files.createTempFile("railbus-", ".log");
        try {
            var log = new RandomAccessFile(file.toFile(), "r");
            var builder = new ProcessBuilder(command).redirectError(file.toFile());
            builder.environment().keySet().removeIf(name -> IGNORED.matcher(name).matches());
            return new Broker(builder.start(), log);
        } finally {
            // The log stays open without a name, so nothing is left of it.
            Files.delete(file);
        }
    }

    /** What the Azure SDKs take. */
    public String connectionString() {
        return connectionString;
    }

    /** Host and port, for AMQP and HTTP. */
    public String address() {
        return address;
    }

    /** Makes a namespace with the entities of this broker and no messages. */
    public Namespace createNamespace() {
        return Namespace.create(address);
    }

    /** Lets time pass. What becomes due has happened when it returns. */
    public void advance(Duration duration) {
        setClock("{\"advance\": \"" + duration + "\"}");
    }

    /** Stops broker time until it is advanced, or lets it run again. */
    public void freeze(boolean frozen) {
        setClock("{\"freeze\": " + frozen + "}");
    }

    /** The bytes that the broker has logged. */
    public long logSize() {
        try {
            return log.length();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** What the broker has logged from the byte {@code since} on. {@code RUST_LOG} says how much that is. */
    public synchronized String log(long since) {
        try {
            var bytes = new byte[Math.toIntExact(Math.max(logSize() - since, 0))];
            log.seek(since);
            log.readFully(bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Process id of the broker. */
    public long pid() {
        return process.pid();
    }

    /** Stops the broker; returns its exit code, which is 0 unless something went wrong. */
    public int stop() {
        try {
            process.getOutputStream().close();
            return process.waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroy();
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while the broker stops", error);
        }
    }

    @Override
    public void close() {
        stop();
    }

    private void setClock(String change) {
        Api.request(address, "POST", "clock", change);
    }
}
