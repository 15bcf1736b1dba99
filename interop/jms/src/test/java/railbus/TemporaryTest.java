package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import org.junit.jupiter.api.Test;

/** Temporary queues and topics: request and reply between connections, and their end. */
class TemporaryTest {
    /** Takes the next request and answers it where it says. */
    private static void answer(Broker service) throws JMSException {
        try (MessageConsumer requests = service.session.createConsumer(service.queue)) {
            TextMessage request = (TextMessage) requests.receive(Broker.PATIENCE_MS);
            assertNotNull(request, "no request came");
            Destination replyTo = request.getJMSReplyTo();
            try (MessageProducer replies = service.session.createProducer(replyTo)) {
                TextMessage reply = service.session.createTextMessage("answer to " + request.getText());
                reply.setJMSCorrelationID(request.getJMSMessageID());
                replies.send(reply);
            }
            request.acknowledge();
        }
    }

    private static TextMessage request(Broker client, Destination replyTo) throws JMSException {
        TextMessage request = client.session.createTextMessage("question");
        request.setJMSReplyTo(replyTo);
        try (MessageProducer producer = client.session.createProducer(client.queue)) {
            producer.send(request);
        }
        return request;
    }

    @Test
    void anotherConnectionRepliesToATemporaryQueue() throws JMSException {
        try (Broker client = new Broker();
                Broker service = new Broker(Session.CLIENT_ACKNOWLEDGE)) {
            TemporaryQueue replies = client.session.createTemporaryQueue();
            try (MessageConsumer consumer = client.session.createConsumer(replies)) {
                TextMessage request = request(client, replies);
                answer(service);
                TextMessage reply = (TextMessage) consumer.receive(Broker.PATIENCE_MS);
                assertNotNull(reply, "no reply came");
                assertEquals("answer to question", reply.getText());
                assertEquals(request.getJMSMessageID(), reply.getJMSCorrelationID());
                reply.acknowledge();
            }
            replies.delete();
        }
    }

    @Test
    void everyConsumerOfATemporaryTopicGetsTheReply() throws JMSException {
        try (Broker client = new Broker();
                Broker service = new Broker(Session.CLIENT_ACKNOWLEDGE)) {
            TemporaryTopic replies = client.session.createTemporaryTopic();
            try (MessageConsumer one = client.session.createConsumer(replies);
                    MessageConsumer two = client.session.createConsumer(replies)) {
                request(client, replies);
                answer(service);
                for (MessageConsumer consumer : new MessageConsumer[] {one, two}) {
                    TextMessage reply = (TextMessage) consumer.receive(Broker.PATIENCE_MS);
                    assertNotNull(reply, "no reply came");
                    assertEquals("answer to question", reply.getText());
                    reply.acknowledge();
                }
                assertNull(one.receive(Broker.LULL_MS));
            }
            replies.delete();
        }
    }

    @Test
    void aDeletedTemporaryQueueIsGoneForOthers() throws JMSException {
        try (Broker client = new Broker();
                Broker service = new Broker(Session.CLIENT_ACKNOWLEDGE)) {
            TemporaryQueue replies = client.session.createTemporaryQueue();
            request(client, replies);
            try (MessageConsumer requests = service.session.createConsumer(service.queue)) {
                Message request = requests.receive(Broker.PATIENCE_MS);
                Destination replyTo = request.getJMSReplyTo();
                replies.delete();
                assertThrows(
                        InvalidDestinationException.class, () -> service.session.createProducer(replyTo));
                request.acknowledge();
            }
        }
    }

    @Test
    void aTemporaryQueueEndsWithItsConnection() throws JMSException {
        try (Broker service = new Broker()) {
            Destination replyTo;
            try (Broker client = new Broker(Session.CLIENT_ACKNOWLEDGE)) {
                request(client, client.session.createTemporaryQueue());
                try (MessageConsumer requests = service.session.createConsumer(service.queue)) {
                    Message request = requests.receive(Broker.PATIENCE_MS);
                    replyTo = request.getJMSReplyTo();
                    service.session.createProducer(replyTo).close();
                    request.acknowledge();
                }
            }
            assertThrows(
                    InvalidDestinationException.class, () -> service.session.createProducer(replyTo));
        }
    }

    @Test
    void aHundredTemporaryQueuesStandSideBySide() throws JMSException {
        try (Broker client = new Broker()) {
            TemporaryQueue[] queues = new TemporaryQueue[100];
            for (int n = 0; n < queues.length; n++) {
                queues[n] = client.session.createTemporaryQueue();
                try (MessageProducer producer = client.session.createProducer(queues[n])) {
                    producer.send(client.session.createTextMessage("message " + n));
                }
            }
            for (int n = 0; n < queues.length; n++) {
                try (MessageConsumer consumer = client.session.createConsumer(queues[n])) {
                    TextMessage message = (TextMessage) consumer.receive(Broker.PATIENCE_MS);
                    assertEquals("message " + n, message.getText());
                    message.acknowledge();
                }
                queues[n].delete();
            }
        }
    }
}
