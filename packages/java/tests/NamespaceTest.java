package railbus.junit;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a namespace of this package promises. */
class NamespaceTest {
    private static final String BUSY = "{\"name\": \"busy\", \"effect\": {\"refuse\": \"server-busy\"}}";

    @RegisterExtension
    static final RailbusExtension RAILBUS = new RailbusExtension().entities(Path.of("Config.json"));

    @Test
    void itHasTheEntitiesOfTheBroker() {
        try (var namespace = RAILBUS.broker().createNamespace()) {
            var key = "SharedAccessKeyName=" + namespace.name() + ";";
            assertTrue(namespace.connectionString().contains(key), namespace.connectionString());
            var reasons = namespace.explain("orders");
            assertTrue(reasons.contains("\"empty\""), reasons);
        }
    }

    @Test
    void itIsGoneWhenItIsClosed() {
        var namespace = RAILBUS.broker().createNamespace();
        namespace.close();
        refused(namespace::reset, namespace.name());
    }

    @Test
    void itHasFaultRulesOfItsOwn() {
        try (var namespace = RAILBUS.broker().createNamespace();
                var other = RAILBUS.broker().createNamespace()) {
            namespace.fault(BUSY);
            assertTrue(namespace.faults().contains("busy"), namespace.faults());
            assertFalse(other.faults().contains("busy"), other.faults());
            namespace.clearFaults();
            assertFalse(namespace.faults().contains("busy"), namespace.faults());
            namespace.fault(BUSY);
            namespace.reset();
            assertFalse(namespace.faults().contains("busy"), namespace.faults());
        }
    }

    @Test
    void itHasAClockOfItsOwn() {
        try (var namespace = RAILBUS.broker().createNamespace();
                var other = RAILBUS.broker().createNamespace()) {
            namespace.advance(Duration.ofDays(1));
            assertTrue(clock(namespace).contains("\"PT24H\""), clock(namespace));
            assertTrue(clock(other).contains("\"PT0S\""), clock(other));
        }
    }

    @Test
    void itGoesBackToWhatWasKept() {
        try (var namespace = RAILBUS.broker().createNamespace()) {
            namespace.snapshot("full");
            namespace.reset();
            namespace.restore("full");
            assertTrue(namespace.explain("orders").contains("\"empty\""));
            refused(() -> namespace.snapshot("full"), "already");
            refused(() -> namespace.restore("gone"), "no snapshot 'gone'");
        }
    }

    private static String clock(Namespace namespace) {
        return Api.request(RAILBUS.broker().address(), "GET", "namespaces/" + namespace.name() + "/clock", "");
    }

    @Test
    void whatIsRefusedIsAnError() {
        var address = RAILBUS.broker().address();
        refused(() -> Namespace.create(address, "a/b"), "a/b");
        try (var namespace = RAILBUS.broker().createNamespace()) {
            refused(() -> Namespace.create(address, namespace.name()), "exists already");
            refused(() -> namespace.fault(BUSY.replace("server-busy", "explode")), "fault");
        }
    }

    private static void refused(Runnable action, String text) {
        var error = assertThrows(IllegalArgumentException.class, action::run);
        assertTrue(error.getMessage().contains(text), error.getMessage());
    }
}
