package railbus;

import com.azure.spring.messaging.implementation.annotation.EnableAzureMessaging;
import com.azure.spring.messaging.servicebus.implementation.core.annotation.ServiceBusListener;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Component;

/**
 * The application: a template and listeners, set up from its properties.
 *
 * <p>It is no part of a test class, since Boot does not look for components there.
 */
@SpringBootApplication
@EnableAzureMessaging
class Application {
    static final String QUEUE = "frameworks-spring-azure";
    static final String TOPIC = "frameworks-spring-azure-events";
    static final int PATIENCE_S = 60;

    @Bean
    Inbox inbox() {
        return new Inbox();
    }

    /** What listeners were given. */
    static class Inbox {
        final BlockingQueue<String> queue = new LinkedBlockingQueue<>();
        final BlockingQueue<String> subscription = new LinkedBlockingQueue<>();
        final BlockingQueue<String> dead = new LinkedBlockingQueue<>();
        final Set<String> failed = ConcurrentHashMap.newKeySet();

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

    @Component
    static class Listeners {
        private final Inbox inbox;

        Listeners(Inbox inbox) {
            this.inbox = inbox;
        }

        /** Fails on what says "poison", and on what says "again" the first time. */
        @ServiceBusListener(destination = QUEUE)
        void handle(String text) {
            inbox.queue.add(text);
            if (text.startsWith("poison") || (text.startsWith("again") && inbox.failed.add(text))) {
                throw new IllegalStateException("not handled");
            }
        }

        @ServiceBusListener(destination = QUEUE + "/$DeadLetterQueue")
        void handleDead(String text) {
            inbox.dead.add(text);
        }

        @ServiceBusListener(destination = TOPIC, group = "all")
        void handleEvent(String text) {
            inbox.subscription.add(text);
        }
    }
}
