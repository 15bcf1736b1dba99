package railbus;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.jms.annotation.EnableJms;
import org.springframework.context.annotation.Bean;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.stereotype.Component;

/**
 * The application: a template and listeners, as the starter sets them up from properties.
 *
 * <p>It is no part of a test class, since Boot does not look for components there.
 */
@SpringBootApplication
@EnableJms
class Application {
    static final String QUEUE = "spring-azure-jms";
    static final String REQUESTS = "spring-azure-jms-requests";
    static final String DEAD = QUEUE + "/$DeadLetterQueue";
    /** The id of the listener of the subscription. */
    static final String EVENTS = "events";
    static final String TOPIC = "spring-azure-jms-events";
    /** What the starter calls the factory for listeners of subscriptions. */
    static final String OF_TOPICS = "topicJmsListenerContainerFactory";
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
        @JmsListener(destination = QUEUE)
        void handle(Message message) throws JMSException {
            String text = ((TextMessage) message).getText();
            inbox.queue.add(text);
            if (text.startsWith("poison") || (text.startsWith("again") && !message.getJMSRedelivered())) {
                throw new IllegalStateException("not handled");
            }
        }

        /** Fails on what says "again" the first time. */
        @JmsListener(id = EVENTS, destination = TOPIC, subscription = "all", containerFactory = OF_TOPICS)
        void handleEvent(Message message) throws JMSException {
            String text = ((TextMessage) message).getText();
            inbox.subscription.add(text);
            if (text.startsWith("again") && !message.getJMSRedelivered()) {
                throw new IllegalStateException("not handled");
            }
        }

        @JmsListener(destination = DEAD)
        void handleDead(String text) {
            inbox.dead.add(text);
        }

        @JmsListener(destination = REQUESTS)
        String answer(String text) {
            return "answer to " + text;
        }
    }
}
