package railbus.junit;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker for tests. In a static field with {@code @RegisterExtension} it lasts for the tests of the class, in an
 * ordinary field for one test. A failed test shows what the broker logged meanwhile.
 */
public final class RailbusExtension
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    private final List<String> options = new ArrayList<>();
    private Broker broker;
    private boolean isShared;
    private long since;

    /** Creates the entities of a file: a Config.json of the Service Bus emulator, or TOML or JSON of Railbus's shape. */
    public RailbusExtension entities(Path file) {
        return options("--entities", file.toString());
    }

    /** Further options of {@code railbus serve}. */
    public RailbusExtension options(String... more) {
        options.addAll(List.of(more));
        return this;
    }

    /** The broker, while a test runs. */
    public Broker broker() {
        return broker;
    }

    /** What the Azure SDKs take. */
    public String connectionString() {
        return broker.connectionString();
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        isShared = true;
        broker = Broker.start(options);
    }

    @Override
    public void beforeEach(ExtensionContext context) throws IOException {
        if (!isShared) {
            broker = Broker.start(options);
        }
        since = isShared ? broker.logSize() : 0;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (broker == null) {
            return;
        }
        if (context.getExecutionException().isPresent()) {
            System.err.println("log of railbus:\n" + broker.log(since));
        }
        if (!isShared) {
            broker.close();
            broker = null;
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (broker != null) {
            broker.close();
        }
    }
}
