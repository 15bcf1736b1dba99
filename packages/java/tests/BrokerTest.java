package railbus.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

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
    void timePassesAndNeverGoesBack() throws IOException {
        var broker = Broker.start(List.of());
        broker.freeze(true);
        broker.advance(Duration.ofDays(1));
        assertThrows(IllegalArgumentException.class, () -> broker.advance(Duration.ofHours(-1)));
        assertEquals(0, broker.stop());
    }
}
