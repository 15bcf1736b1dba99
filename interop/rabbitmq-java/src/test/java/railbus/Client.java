package railbus;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.amqp.Connection;
import com.rabbitmq.client.amqp.Consumer;
import com.rabbitmq.client.amqp.Environment;
import com.rabbitmq.client.amqp.Management;
import com.rabbitmq.client.amqp.Message;
import com.rabbitmq.client.amqp.Publisher;
import com.rabbitmq.client.amqp.impl.AmqpEnvironmentBuilder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;

/** A connection of RabbitMQ's client, and the queues that go with it. */
final class Client implements AutoCloseable {
    /** A broker has this long for what takes it a moment. */
    static final int PATIENCE_SECONDS = 30;

    final Environment environment = new AmqpEnvironmentBuilder().build();
    final Connection connection;
    final Management management;
    private final List<String> queues = new ArrayList<>();

    Client() {
        connection = environment.connectionBuilder()
            .host(System.getenv("RAILBUS_HOST"))
            .port(Integer.parseInt(System.getenv("RAILBUS_PORT")))
            .username("guest")
            .password("guest")
            .build();
        management = connection.management();
    }

    static String fresh() {
        return "rabbitmq-java-" + UUID.randomUUID();
    }

    /** Declares a quorum queue that goes with this connection. */
    String declare(UnaryOperator<Management.QueueSpecification> with) {
        String name = fresh();
        with.apply(management.queue(name).type(Management.QueueType.QUORUM)).declare();
        queues.add(name);
        return name;
    }

    String declare() {
        return declare(queue -> queue);
    }

    /** Publishes to a queue and returns what became of it. */
    Publisher.Context publish(String queue, String body) {
        try (Publisher publisher = connection.publisherBuilder().queue(queue).build()) {
            return publish(publisher, publisher.message(body.getBytes(StandardCharsets.UTF_8)));
        }
    }

    static Publisher.Context publish(Publisher publisher, Message message) {
        CompletableFuture<Publisher.Context> outcome = new CompletableFuture<>();
        publisher.publish(message, outcome::complete);
        return outcome.orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS).join();
    }

    Deliveries consume(String queue) {
        return new Deliveries(queue);
    }

    long ready(String queue) {
        return management.queueInfo(queue).messageCount();
    }

    /** Waits for what a settlement, which is not answered, brings about. */
    static void eventually(BooleanSupplier holds) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!holds.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, "it did not come to be");
            Thread.sleep(20);
        }
    }

    static String text(Message message) {
        return new String(message.body(), StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        queues.forEach(management::queueDelete);
        environment.close();
    }

    /** A message and what it is settled by. */
    record Delivery(Consumer.Context context, Message message) {
    }

    /** What a consumer is given. */
    final class Deliveries implements AutoCloseable {
        private final BlockingQueue<Delivery> arrived = new LinkedBlockingQueue<>();
        private final Consumer consumer;

        private Deliveries(String queue) {
            consumer = connection.consumerBuilder()
                .queue(queue)
                .messageHandler((context, message) -> arrived.add(new Delivery(context, message)))
                .build();
        }

        Delivery next() throws InterruptedException {
            Delivery delivery = arrived.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            assertNotNull(delivery, "no message came");
            return delivery;
        }

        Delivery nextWithin(int milliseconds) throws InterruptedException {
            return arrived.poll(milliseconds, TimeUnit.MILLISECONDS);
        }

        @Override
        public void close() {
            consumer.close();
        }
    }
}
