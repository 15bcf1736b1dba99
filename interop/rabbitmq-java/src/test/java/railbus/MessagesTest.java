package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.amqp.Management;
import com.rabbitmq.client.amqp.Message;
import com.rabbitmq.client.amqp.Publisher;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Publishing with its outcomes, and what a consumer does with a message. */
class MessagesTest {
    @Test
    void aMessageArrivesAsItWasPublished() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare();
            try (Publisher publisher = client.connection.publisherBuilder().queue(queue).build();
                Client.Deliveries deliveries = client.consume(queue)) {
                Message sent = publisher.message("body".getBytes()).messageId(7L).subject("s").property("key", "value");
                Client.publish(publisher, sent);
                Client.Delivery delivery = deliveries.next();
                assertEquals("body", Client.text(delivery.message()));
                assertEquals(7L, delivery.message().messageIdAsLong());
                assertEquals("s", delivery.message().subject());
                assertEquals("value", delivery.message().property("key"));
                delivery.context().accept();
                Client.eventually(() -> client.ready(queue) == 0);
            }
        }
    }

    @Test
    void aFullQueueRejectsWithItsName() {
        try (Client client = new Client()) {
            String queue = client.declare(
                with -> with.maxLength(1).overflowStrategy(Management.OverflowStrategy.REJECT_PUBLISH));
            assertEquals(Publisher.Status.ACCEPTED, client.publish(queue, "one").status());
            Publisher.Context refused = client.publish(queue, "two");
            assertEquals(Publisher.Status.REJECTED, refused.status());
            assertTrue(refused.failureCause().getMessage().contains(queue), refused.failureCause().getMessage());
        }
    }

    @Test
    void aMessageNamesItsAddress() {
        try (Client client = new Client()) {
            String queue = client.declare();
            try (Publisher publisher = client.connection.publisherBuilder().build()) {
                Message there = publisher.message(new byte[] {1}).toAddress().queue(queue).message();
                assertEquals(Publisher.Status.ACCEPTED, Client.publish(publisher, there).status());
                Message nowhere = publisher.message(new byte[] {1}).toAddress().queue(Client.fresh()).message();
                assertEquals(Publisher.Status.RELEASED, Client.publish(publisher, nowhere).status());
            }
            assertEquals(1, client.ready(queue));
        }
    }

    @Test
    void aRequeuedMessageComesAgainWithItsAnnotations() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare();
            client.publish(queue, "again");
            try (Client.Deliveries deliveries = client.consume(queue)) {
                deliveries.next().context().requeue();
                deliveries.next().context().requeue(Map.of("x-opt-attempt", "second"));
                Client.Delivery last = deliveries.next();
                assertEquals("second", last.message().annotation("x-opt-attempt"));
                assertEquals(0, last.message().deliveryCount());
                last.context().accept();
            }
        }
    }

    @Test
    void aDiscardedMessageGoesToTheDeadLetterExchange() throws InterruptedException {
        try (Client client = new Client()) {
            String dead = client.declare();
            String queue = client.declare(with -> with.deadLetterExchange("").deadLetterRoutingKey(dead));
            client.publish(queue, "bad");
            client.publish(queue, "worse");
            try (Client.Deliveries deliveries = client.consume(queue);
                Client.Deliveries dying = client.consume(dead)) {
                deliveries.next().context().discard();
                deliveries.next().context().discard(Map.of("x-opt-reason", "worse"));
                Set<Object> reasons = new HashSet<>();
                for (int number = 0; number < 2; number++) {
                    Client.Delivery delivery = dying.next();
                    assertEquals(queue, delivery.message().annotation("x-first-death-queue"));
                    assertEquals("rejected", delivery.message().annotation("x-first-death-reason"));
                    reasons.add(delivery.message().annotation("x-opt-reason"));
                    delivery.context().accept();
                }
                assertTrue(reasons.contains("worse"));
            }
        }
    }

    @Test
    void onlyTheActiveOfSeveralConsumersIsServed() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare(with -> with.singleActiveConsumer(true));
            Client.Deliveries active = client.consume(queue);
            try (Client.Deliveries waiting = client.consume(queue)) {
                client.publish(queue, "one");
                client.publish(queue, "two");
                active.next().context().accept();
                active.next().context().accept();
                assertNull(waiting.nextWithin(300));
                active.close();
                client.publish(queue, "three");
                waiting.next().context().accept();
            }
        }
    }

    @Test
    void aBatchOfMessagesIsSettledAtOnce() throws InterruptedException {
        try (Client client = new Client()) {
            String queue = client.declare();
            for (int number = 0; number < 10; number++) {
                client.publish(queue, "number " + number);
            }
            try (Client.Deliveries deliveries = client.consume(queue)) {
                var first = deliveries.next().context();
                var batch = first.batch(10);
                batch.add(first);
                while (batch.size() < 10) {
                    batch.add(deliveries.next().context());
                }
                batch.accept();
            }
            Client.eventually(() -> client.ready(queue) == 0);
        }
    }
}
