package railbus;

import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.Message;

/**
 * The application: a function for each binding, set up from its properties.
 *
 * <p>It is no part of a test class, since Boot does not look for beans there.
 */
@SpringBootApplication
class Application {
    static final int PATIENCE_S = 60;

    @Bean
    Inbox inbox() {
        return new Inbox();
    }

    /** Fails on what says "poison", and on what says "again" the first time. */
    @Bean
    Consumer<Message<String>> orders(Inbox inbox) {
        return message -> {
            String text = message.getPayload();
            inbox.orders.add(text);
            if (text.startsWith("poison") || (text.startsWith("again") && inbox.failed.add(text))) {
                throw new IllegalStateException("not handled");
            }
        };
    }

    @Bean
    Consumer<Message<String>> dead(Inbox inbox) {
        return message -> inbox.dead.add(message.getPayload());
    }

    /** Fails on what says "poison". */
    @Bean
    Consumer<Message<String>> events(Inbox inbox) {
        return message -> {
            inbox.events.add(message.getPayload());
            if (message.getPayload().startsWith("poison")) {
                throw new IllegalStateException("not handled");
            }
        };
    }

    /** Dead letters of the subscription, with the reasons that the binder gave. */
    @Bean
    Consumer<Message<String>> deadEvents(Inbox inbox) {
        return message -> {
            Object reason = message.getHeaders().get(ServiceBusMessageHeaders.DEAD_LETTER_REASON);
            inbox.deadEvents.add(message.getPayload() + ": " + reason);
        };
    }

    @Bean
    Consumer<Message<String>> sessions(Inbox inbox) {
        return message -> {
            Object session = message.getHeaders().get(ServiceBusMessageHeaders.SESSION_ID);
            inbox.sessions.add(session + ": " + message.getPayload());
        };
    }

    /** What functions were given. */
    static class Inbox {
        final BlockingQueue<String> orders = new LinkedBlockingQueue<>();
        final BlockingQueue<String> dead = new LinkedBlockingQueue<>();
        final BlockingQueue<String> events = new LinkedBlockingQueue<>();
        final BlockingQueue<String> deadEvents = new LinkedBlockingQueue<>();
        final BlockingQueue<String> sessions = new LinkedBlockingQueue<>();
        final Set<String> failed = ConcurrentHashMap.newKeySet();

        /** Waits until a text has arrived this often, and says how often it has. Others are left behind. */
        static int arrivals(BlockingQueue<String> from, String text, int expected) throws InterruptedException {
            int arrived = 0;
            while (arrived < expected) {
                String next = from.poll(PATIENCE_S, TimeUnit.SECONDS);
                if (next == null) {
                    break;
                }
                arrived += next.startsWith(text) ? 1 : 0;
            }
            return arrived;
        }
    }
}
