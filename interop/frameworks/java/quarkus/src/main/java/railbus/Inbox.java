package railbus;

import jakarta.inject.Singleton;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.eclipse.microprofile.reactive.messaging.Incoming;

/** The consumers of the application, and what they were given. A singleton has no proxy, so tests may read its fields. */
@Singleton
public class Inbox {
    private static final int PATIENCE_S = 60;

    final BlockingQueue<String> orders = new LinkedBlockingQueue<>();
    final BlockingQueue<String> dead = new LinkedBlockingQueue<>();
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();
    final BlockingQueue<String> deadEvents = new LinkedBlockingQueue<>();
    private final Set<String> failed = ConcurrentHashMap.newKeySet();

    /** Fails on what says "poison", and on what says "again" the first time. */
    @Incoming("orders")
    void handle(String text) {
        orders.add(text);
        if (text.startsWith("poison") || (text.startsWith("again") && failed.add(text))) {
            throw new IllegalStateException("not handled");
        }
    }

    @Incoming("dead")
    void handleDead(String text) {
        dead.add(text);
    }

    /** Fails on what says "poison". */
    @Incoming("events")
    void handleEvent(String text) {
        events.add(text);
        if (text.startsWith("poison")) {
            throw new IllegalStateException("not handled");
        }
    }

    @Incoming("dead-events")
    void handleDeadEvent(String text) {
        deadEvents.add(text);
    }

    /** Waits until a text has arrived this often, and says how often it has. Others are left behind. */
    static int arrivals(BlockingQueue<String> from, String text, int expected) throws InterruptedException {
        int arrived = 0;
        while (arrived < expected) {
            String next = from.poll(PATIENCE_S, TimeUnit.SECONDS);
            if (next == null) {
                break;
            }
            arrived += next.equals(text) ? 1 : 0;
        }
        return arrived;
    }
}
