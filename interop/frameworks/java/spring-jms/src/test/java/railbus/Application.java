package railbus;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.stereotype.Component;

/**
 * The application: a template and listeners over Qpid JMS, as Boot sets them up.
 *
 * <p>It is no part of a test class, since Boot does not look for components there.
 */
@SpringBootApplication
class Application {
    static final String QUEUE = "frameworks-spring";
    static final String REQUESTS = "frameworks-spring-requests";
    static final String ANSWERS = "frameworks-spring-answers";
    static final String DEAD = QUEUE + "/$DeadLetterQueue";
    static final String TOPIC = "frameworks-spring-events";
    static final int PATIENCE_S = 60;

    @Bean
    ConnectionFactory connectionFactory() {
        String address = "amqp://" + System.getenv("RAILBUS_HOST") + ":" + System.getenv("RAILBUS_PORT");
        return new CachingConnectionFactory(
                new JmsConnectionFactory("RootManageSharedAccessKey", "SAS_KEY_VALUE", address));
    }

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

        @JmsListener(destination = TOPIC + "/Subscriptions/all")
        void handleEvent(String text) {
            inbox.subscription.add(text);
        }

        @JmsListener(destination = DEAD)
        void handleDead(String text) {
            inbox.dead.add(text);
        }

        /** Answers within the session's transaction. Fails on what says "again" the first time. */
        @JmsListener(destination = REQUESTS)
        String answer(Message message) throws JMSException {
            String text = ((TextMessage) message).getText();
            if (text.startsWith("again") && !message.getJMSRedelivered()) {
                throw new IllegalStateException("not handled");
            }
            return "answer to " + text;
        }
    }
}
