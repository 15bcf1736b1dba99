package railbus.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtensionContext;

/** What a broker of this package promises. */
class BrokerTest {
    /** Starts a broker, says which, and waits to be killed. */
    public static void main(String[] arguments) throws Exception {
        var broker = Broker.start(List.of());
        System.out.println(broker.pid());
        new CountDownLatch(1).await();
        broker.close();
    }

    @Test
    void nothingIsLeftOfAProcessThatIsKilled() throws Exception {
        var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        var classes = System.getProperty("java.class.path");
        var command = new ProcessBuilder(java, "-cp", classes, BrokerTest.class.getName());
        var parent = command.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var output = new BufferedReader(new InputStreamReader(parent.getInputStream()))) {
            var broker = ProcessHandle.of(Long.parseLong(output.readLine())).orElseThrow();
            parent.destroyForcibly().waitFor();
            broker.onExit().join();
        }
    }

    @Test
    void aTakenPortIsNamed() throws IOException {
        try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            var address = "127.0.0.1:" + taken.getLocalPort();
            var options = List.of("--listen", address);
            var error = assertThrows(IOException.class, () -> Broker.start(options));
            assertTrue(error.getMessage().contains("exit code 2 before it was ready"), error.getMessage());
            assertTrue(error.getMessage().contains(address), error.getMessage());
        }
    }

    @Test
    void aFailedTestShowsWhatTheBrokerLogged() throws Exception {
        var shown = shownAfter(Optional.of(new AssertionError("no")));
        assertTrue(shown.startsWith("log of railbus:\n") && shown.contains("/nowhere"), shown);
        assertEquals("", shownAfter(Optional.empty()));
    }

    /** What is printed after a test that has asked the broker for what is not there. */
    private static String shownAfter(Optional<Throwable> failure) throws Exception {
        var extension = new RailbusExtension();
        extension.beforeEach(null);
        var missing = URI.create("http://" + extension.broker().address() + "/$railbus/nowhere").toURL();
        assertEquals(404, ((HttpURLConnection) missing.openConnection()).getResponseCode());
        // Of its context an extension asks only why the test has failed.
        var context = (ExtensionContext) Proxy.newProxyInstance(ExtensionContext.class.getClassLoader(),
                new Class<?>[] {ExtensionContext.class}, (proxy, method, arguments) -> failure);
        var printed = new ByteArrayOutputStream();
        var before = System.err;
        System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            extension.afterEach(context);
        } finally {
            System.setErr(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    @Test
    void aStartTakesMilliseconds() throws IOException {
        var took = new double[5];
        for (var round = 0; round < took.length; round++) {
            var began = System.nanoTime();
            try (var broker = Broker.start(List.of())) {
                took[round] = (System.nanoTime() - began) / 1e6;
                assertTrue(broker.pid() > 0);
            }
        }
        Arrays.sort(took);
        System.out.printf("ready after %.1f ms (median of %d)%n", took[2], took.length);
    }

    @Test
    void timePassesAndNeverGoesBack() throws IOException {
        var broker = Broker.start(List.of());
        broker.freeze(true);
        broker.advance(Duration.ofDays(1));
        assertThrows(IllegalArgumentException.class, () -> broker.advance(Duration.ofHours(-1)));
        assertEquals(0, broker.stop());
    }
}
