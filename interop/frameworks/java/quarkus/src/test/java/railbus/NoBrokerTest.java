package railbus;

import static org.junit.jupiter.api.Assertions.assertNull;

import io.quarkus.test.junit.QuarkusTest;
import jakarta.inject.Inject;
import org.junit.jupiter.api.Test;

/** The application starts without its broker, and goes on to look for it. `setup` runs it, since it needs none. */
@QuarkusTest
class NoBrokerTest {
    @Inject
    Inbox inbox;

    @Test
    void theApplicationStarts() {
        assertNull(inbox.events.peek());
    }
}
