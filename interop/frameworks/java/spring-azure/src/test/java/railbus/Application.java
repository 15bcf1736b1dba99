package railbus;

import com.azure.spring.messaging.ConsumerIdentifier;
import com.azure.spring.messaging.PropertiesSupplier;
import com.azure.spring.messaging.implementation.annotation.EnableAzureMessaging;
import com.azure.spring.messaging.servicebus.core.properties.ProcessorProperties;
import com.azure.spring.messaging.servicebus.implementation.core.annotation.ServiceBusListener;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.handler.annotation.Header;
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
    static final String SESSIONS = "frameworks-spring-azure-sessions";
    static final String TOPIC = "frameworks-spring-azure-events";
    static final int PATIENCE_S = 60;

    @Bean
    Inbox inbox() {
        return new Inbox();
    }

    /**
     * The settings of each listener's processor, for one of which sessions are enabled.
     *
     * <p>The property {@code spring.cloud.azure.servicebus.processor.session-enabled} does not reach listeners: they take
     * over the settings of the namespace, not of the processor.
     */
    @Bean
    PropertiesSupplier<ConsumerIdentifier, ProcessorProperties> processors() {
        return consumer -> {
            ProcessorProperties properties = new ProcessorProperties();
            if (consumer.getDestination().equals(SESSIONS)) {
                properties.setSessionEnabled(true);
                properties.setMaxConcurrentSessions(2);
                properties.setSessionIdleTimeout(Duration.ofSeconds(2));
            }
            return properties;
        };
    }

    /** What listeners were given. */
    static class Inbox {
        final BlockingQueue<String> queue = new LinkedBlockingQueue<>();
        final BlockingQueue<String> subscription = new LinkedBlockingQueue<>();
        final BlockingQueue<String> dead = new LinkedBlockingQueue<>();
        final Map<String, BlockingQueue<String>> sessions = new ConcurrentHashMap<>();
        final Set<String> failed = ConcurrentHashMap.newKeySet();

        BlockingQueue<String> session(String id) {
            return sessions.computeIfAbsent(id, none -> new LinkedBlockingQueue<>());
        }

        /** The next texts, as many as expected unless they do not arrive, in the order of their arrival. */
        static List<String> next(BlockingQueue<String> from, int expected) throws InterruptedException {
            List<String> arrived = new ArrayList<>();
            while (arrived.size() < expected) {
                String next = from.poll(PATIENCE_S, TimeUnit.SECONDS);
                if (next == null) {
                    break;
                }
                arrived.add(next);
            }
            return arrived;
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

        /** Fails the first time on what says "again". */
        @ServiceBusListener(destination = SESSIONS)
        void handleInSession(String text, @Header(ServiceBusMessageHeaders.SESSION_ID) String session) {
            inbox.session(session).add(text);
            if (text.startsWith("again") && inbox.failed.add(text)) {
                throw new IllegalStateException("not handled");
            }
        }

        @ServiceBusListener(destination = TOPIC, group = "all")
        void handleEvent(String text) {
            inbox.subscription.add(text);
        }
    }
}
