package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.rabbitmq.client.amqp.AmqpException;
import com.rabbitmq.client.amqp.Management;
import com.rabbitmq.client.amqp.Message;
import com.rabbitmq.client.amqp.Publisher;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Management over the link pair: queues, exchanges and bindings. */
class ManagementTest {
    /** Needs no broker: the set-up runs it so that Maven has fetched all that a run takes. */
    @Test
    void namesAreOfOneTestAlone() {
        assertNotEquals(Client.fresh(), Client.fresh());
    }

    @Test
    void aQueueIsDeclaredShownPurgedAndDeleted() {
        try (Client client = new Client()) {
            String queue = client.declare(with -> with.messageTtl(Duration.ofMinutes(10)).maxLength(100));
            for (int number = 0; number < 3; number++) {
                assertEquals(Publisher.Status.ACCEPTED, client.publish(queue, "body").status());
            }
            Management.QueueInfo info = client.management.queueInfo(queue);
            assertEquals(queue, info.name());
            assertEquals(Management.QueueType.QUORUM, info.type());
            assertEquals(3, info.messageCount());
            assertEquals(600_000L, ((Number) info.arguments().get("x-message-ttl")).longValue());
            assertEquals(3, client.management.queuePurge(queue).messageCount());
            client.management.queueDelete(queue);
            assertThrows(
                AmqpException.AmqpEntityDoesNotExistException.class, () -> client.management.queueInfo(queue));
        }
    }

    @Test
    void aQueueThatDiffersIsRefused() {
        try (Client client = new Client()) {
            String queue = client.declare();
            Management.QueueSpecification other = client.management.queue(queue).type(Management.QueueType.CLASSIC);
            AmqpException refused = assertThrows(AmqpException.class, other::declare);
            assertEquals(true, refused.getMessage().contains("inequivalent arg"), refused.getMessage());
        }
    }

    @Test
    void aTopicExchangeRoutesUntilItsBindingIsRemoved() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare();
            String exchange = Client.fresh();
            client.management.exchange(exchange).type(Management.ExchangeType.TOPIC).declare();
            client.management.binding().sourceExchange(exchange).destinationQueue(queue).key("orders.*").bind();
            try (Publisher publisher = client.connection.publisherBuilder().exchange(exchange).key("orders.new").build();
                Client.Deliveries deliveries = client.consume(queue)) {
                Message message = publisher.message(new byte[] {1});
                assertEquals(Publisher.Status.ACCEPTED, Client.publish(publisher, message).status());
                Client.Delivery delivery = deliveries.next();
                assertEquals(exchange, delivery.message().annotation("x-exchange"));
                assertEquals("orders.new", delivery.message().annotation("x-routing-key"));
                delivery.context().accept();
                client.management.unbind().sourceExchange(exchange).destinationQueue(queue).key("orders.*").unbind();
                Message lost = publisher.message(new byte[] {2});
                assertEquals(Publisher.Status.RELEASED, Client.publish(publisher, lost).status());
            }
            client.management.exchangeDelete(exchange);
        }
    }

    @Test
    void aBindingIsFoundByItsArgumentsAndRemoved() {
        try (Client client = new Client()) {
            String queue = client.declare();
            String exchange = Client.fresh();
            client.management.exchange(exchange).type(Management.ExchangeType.HEADERS).declare();
            client.management.binding().sourceExchange(exchange).destinationQueue(queue)
                .argument("x-match", "all").argument("colour", "red").argument("size", 3).bind();
            try (Publisher publisher = client.connection.publisherBuilder().exchange(exchange).build()) {
                Message red = publisher.message(new byte[] {1}).property("colour", "red").property("size", 3);
                assertEquals(Publisher.Status.ACCEPTED, Client.publish(publisher, red).status());
                client.management.unbind().sourceExchange(exchange).destinationQueue(queue)
                    .argument("x-match", "all").argument("colour", "red").argument("size", 3).unbind();
                Message lost = publisher.message(new byte[] {1}).property("colour", "red").property("size", 3);
                assertEquals(Publisher.Status.RELEASED, Client.publish(publisher, lost).status());
            }
            client.management.exchangeDelete(exchange);
        }
    }

    @Test
    void aMissingQueueIsAnEntityThatDoesNotExist() {
        try (Client client = new Client()) {
            String missing = Client.fresh();
            assertThrows(
                AmqpException.AmqpEntityDoesNotExistException.class,
                () -> client.connection.publisherBuilder().queue(missing).build());
            assertThrows(
                AmqpException.AmqpEntityDoesNotExistException.class,
                () -> client.connection.consumerBuilder().queue(missing).messageHandler((c, m) -> c.accept()).build());
        }
    }
}
