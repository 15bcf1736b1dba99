package railbus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.PATIENCE;
import static railbus.Queue.assertNothingComes;
import static railbus.Queue.eventually;
import static railbus.Queue.message;
import static railbus.Queue.messages;
import static railbus.Queue.receivedIds;
import static railbus.Queue.sentIds;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** The asynchronous clients, which are Reactor's publishers: sending, receiving, settling, scheduling, transactions. */
class AsyncTest extends AsyncClients {
    @Test
    void aListOfMessagesArrivesWhole() {
        List<ServiceBusMessage> sent = messages(10);
        sender("orders").sendMessages(sent).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        List<ServiceBusReceivedMessage> received = receiver.receiveMessages()
            .concatMap(one -> receiver.complete(one).thenReturn(one)).take(10).collectList().block(PATIENCE);
        assertEquals(sentIds(sent), receivedIds(received));
        queue("orders").assertEmpty();
    }

    @Test
    void aFullBatchTakesNoMoreAndIsSent() {
        ServiceBusSenderAsyncClient sender = sender("orders");
        int count = sender.createMessageBatch().flatMap(batch -> {
            messages(10).forEach(batch::tryAddMessage);
            return sender.sendMessages(batch).thenReturn(batch.getCount());
        }).block(PATIENCE);
        assertEquals(10, count);
        assertEquals(10, queue("orders").take(10).size());
    }

    @Test
    void twoHundredConcurrentSendsAllArriveOnce() {
        ServiceBusSenderAsyncClient sender = sender("orders");
        List<ServiceBusMessage> sent = messages(200);
        Flux.fromIterable(sent).flatMap(sender::sendMessage, 50).blockLast(PATIENCE);
        Queue queue = queue("orders");
        assertEquals(sentIds(sent).stream().sorted().toList(), receivedIds(queue.take(200)).stream().sorted().toList());
        queue.assertEmpty();
    }

    @Test
    void aStreamOfMessagesIsCompletedByTheSdk() {
        Queue queue = queue("orders");
        queue.sender().sendMessages(messages(10));
        ServiceBusReceiverAsyncClient receiver = open(builder().receiver().queueName("orders").buildAsyncClient());
        for (int count = 0; count < 10; count++) {
            next(receiver);
        }
        eventually("the removal of all messages", () -> queue.peek().isEmpty());
    }

    @Test
    void prefetchedMessagesComeInOrderAndOnce() {
        List<ServiceBusMessage> sent = messages(100);
        queue("orders").sender().sendMessages(sent);
        ServiceBusReceiverAsyncClient receiver = open(receiving("orders").prefetchCount(20).buildAsyncClient());
        List<ServiceBusReceivedMessage> received = receiver.receiveMessages()
            .concatMap(one -> receiver.complete(one).thenReturn(one)).take(100).collectList().block(PATIENCE);
        assertEquals(sentIds(sent), receivedIds(received));
        queue("orders").assertEmpty();
    }

    @Test
    void peekShowsMessagesInOrderAndTakesNothing() {
        List<ServiceBusMessage> sent = messages(5);
        sender("orders").sendMessages(sent).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        List<ServiceBusReceivedMessage> peeked =
            receiver.peekMessages(3).concatWith(receiver.peekMessages(10)).collectList().block(PATIENCE);
        assertEquals(sentIds(sent), receivedIds(peeked));
        assertEquals(sentIds(sent), receivedIds(queue("orders").take(5)));
    }

    @Test
    void aMessageWithNothingButABodyIsCompleted() {
        sender("orders").sendMessage(new ServiceBusMessage("body")).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage received = next(receiver);
        assertEquals("body", received.getBody().toString());
        receiver.complete(received).block(PATIENCE);
        queue("orders").assertEmpty();
    }

    @Test
    void aCompletedMessageNeverComesBack() {
        queue("orders").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        receiver.complete(next(receiver)).block(PATIENCE);
        queue("orders").assertEmpty();
        assertTrue(queue("orders").peekDead().isEmpty());
    }

    @Test
    void anAbandonedMessageComesBackWithItsCountRaisedAndPropertiesModified() {
        queue("orders").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        AbandonOptions changed = new AbandonOptions().setPropertiesToModify(Map.of("changed", "new"));
        List<Long> counts = receiver.receiveMessages().concatMap(one ->
            (one.getDeliveryCount() == 0 ? receiver.abandon(one, changed) : receiver.complete(one))
                .thenReturn(one.getDeliveryCount())).take(2).collectList().block(PATIENCE);
        assertEquals(List.of(0L, 1L), counts);
        queue("orders").assertEmpty();
    }

    @Test
    void theDeadLetterQueueTellsReasonDescriptionAndModifiedProperties() {
        queue("orders").send(message("bad"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        receiver.deadLetter(next(receiver), new DeadLetterOptions().setDeadLetterReason("Unreadable")
            .setDeadLetterErrorDescription("It is not JSON.").setPropertiesToModify(Map.of("stage", "parse")))
            .block(PATIENCE);
        ServiceBusReceivedMessage dead = queue("orders").takeDead();
        assertEquals("Unreadable", dead.getDeadLetterReason());
        assertEquals("It is not JSON.", dead.getDeadLetterErrorDescription());
        assertEquals("parse", dead.getApplicationProperties().get("stage"));
    }

    @Test
    void aDeferredMessageComesOnlyByItsNumber() {
        queue("orders").send(message("later"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage received = next(receiver);
        receiver.defer(received).block(PATIENCE);
        assertEquals(ServiceBusMessageState.DEFERRED, queue("orders").peek().get(0).getState());
        receiver.receiveDeferredMessage(received.getSequenceNumber()).flatMap(receiver::complete).block(PATIENCE);
        queue("orders").assertEmpty();
    }

    @Test
    void scheduledMessagesComeAtTheirTimeAndCancelledOnesDoNot() throws Exception {
        ServiceBusSenderAsyncClient sender = sender("orders");
        List<ServiceBusMessage> sent = messages(2);
        List<Long> numbers = sender.scheduleMessages(sent, OffsetDateTime.now().plusHours(1)).collectList().block(PATIENCE);
        Queue queue = queue("orders");
        assertEquals(numbers, queue.peek().stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList());
        sender.cancelScheduledMessage(numbers.get(1)).block(PATIENCE);
        broker.advance("PT1H");
        assertEquals(sentIds(sent.subList(0, 1)), receivedIds(queue.take(1)));
        queue.assertEmpty();
    }

    @Test
    void aLockIsLostWhenItsFiveMinutesHavePassed() throws Exception {
        queue("orders").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage late = next(receiver);
        broker.advance("PT5M");
        assertEquals(ServiceBusFailureReason.MESSAGE_LOCK_LOST, reasonOf(receiver.complete(late)));
        assertEquals(ServiceBusFailureReason.MESSAGE_LOCK_LOST, reasonOf(receiver.renewMessageLock(late)));
        assertEquals(1, next(receiver).getDeliveryCount());
    }

    @Test
    void aLockThatWasRenewedLastsFromItsRenewal() throws Exception {
        queue("orders").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage held = next(receiver);
        broker.advance("PT4M");
        receiver.renewMessageLock(held).block(PATIENCE);
        broker.advance("PT4M");
        receiver.complete(held).block(PATIENCE);
        queue("orders").assertEmpty();
    }

    @Test
    void aReceiverKeepsTheLocksOfItsMessages() throws Exception {
        broker.freeze();
        queue("brief").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = open(receiving("brief").maxAutoLockRenewDuration(Duration.ofMinutes(1))
            .buildAsyncClient());
        ServiceBusReceivedMessage held = next(receiver);
        OffsetDateTime end = held.getLockedUntil();
        broker.advance("PT4S");
        eventually("the renewal", () -> held.getLockedUntil().isAfter(end));
        broker.advance("PT4S");
        receiver.complete(held).block(PATIENCE);
        queue("brief").assertEmpty();
    }

    @Test
    void aCommitSendsAndCompletesAndARollbackDoesNot() {
        queue("orders").send(message("request"));
        ServiceBusClientBuilder shared = builder();
        ServiceBusSenderAsyncClient sender = open(shared.sender().queueName("orders").buildAsyncClient());
        ServiceBusReceiverAsyncClient receiver = open(shared.receiver().queueName("orders").disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient());
        ServiceBusReceivedMessage request = next(receiver);
        ServiceBusTransactionContext dropped = sender.createTransaction().block(PATIENCE);
        sender.sendMessage(message("dropped"), dropped).then(sender.rollbackTransaction(dropped)).block(PATIENCE);
        ServiceBusMessage reply = message("reply");
        sender.createTransaction().flatMap(transaction -> sender.sendMessage(reply, transaction)
            .then(receiver.complete(request, new CompleteOptions().setTransactionContext(transaction)))
            .then(sender.commitTransaction(transaction))).block(PATIENCE);
        assertEquals(List.of(reply.getMessageId()), receivedIds(queue("orders").peek()));
    }

    @Test
    void aSentMessageArrivesWithItsBody() {
        ServiceBusMessage sent = message("hello");
        sender("orders").sendMessage(sent).block(PATIENCE);
        ServiceBusReceivedMessage received = queue("orders").take(1).get(0);
        assertEquals(sent.getMessageId(), received.getMessageId());
        assertEquals("hello", received.getBody().toString());
    }

    @Test
    void aBatchArrivesWholeAndInOrder() {
        List<ServiceBusMessage> sent = messages(10);
        ServiceBusSenderAsyncClient sender = sender("orders");
        sender.createMessageBatch().flatMap(batch -> {
            sent.forEach(batch::tryAddMessage);
            return sender.sendMessages(batch);
        }).block(PATIENCE);
        assertEquals(sentIds(sent), receivedIds(queue("orders").take(10)));
    }

    @Test
    void aLargeMessageArrivesByteForByte() {
        byte[] body = new byte[200 * 1024];
        new Random(7).nextBytes(body);
        sender("orders").sendMessage(message(BinaryData.fromBytes(body))).block(PATIENCE);
        assertArrayEquals(body, queue("orders").take(1).get(0).getBody().toBytes());
    }

    @Test
    void messagePropertiesComeBackEqual() {
        ServiceBusMessage sent = message("body").setCorrelationId("the request").setSubject("orders")
            .setContentType("application/json").setTimeToLive(Duration.ofMinutes(10));
        Map<String, Object> properties = Map.of("number", 7, "text", "naïve", "flag", true);
        sent.getApplicationProperties().putAll(properties);
        sender("orders").sendMessage(sent).block(PATIENCE);
        ServiceBusReceivedMessage received = queue("orders").take(1).get(0);
        assertEquals("the request", received.getCorrelationId());
        assertEquals("orders", received.getSubject());
        assertEquals("application/json", received.getContentType());
        assertEquals(Duration.ofMinutes(10), received.getTimeToLive());
        assertEquals(properties, received.getApplicationProperties());
    }

    @Test
    void bodiesOfEveryKindComeBackEqual() {
        List<AmqpMessageBody> bodies = List.of(AmqpMessageBody.fromSequence(List.of("a", 2, true)),
            AmqpMessageBody.fromValue("value"));
        Flux.fromIterable(bodies).concatMap(body -> sender("orders").sendMessage(new ServiceBusMessage(body)))
            .blockLast(PATIENCE);
        List<ServiceBusReceivedMessage> received = queue("orders").take(2);
        assertEquals(List.of("a", 2, true), received.get(0).getRawAmqpMessage().getBody().getSequence());
        assertEquals("value", received.get(1).getRawAmqpMessage().getBody().getValue());
    }

    @Test
    void receiveAndDeleteRemovesAtDelivery() {
        sender("orders").sendMessages(messages(3)).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = open(builder().receiver().queueName("orders")
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildAsyncClient());
        assertEquals(3, receiver.receiveMessages().take(3).collectList().block(PATIENCE).size());
        queue("orders").assertEmpty();
    }

    @Test
    void peekLockHidesAMessageUntilItIsCompleted() {
        sender("orders").sendMessage(message("body")).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = receiver("orders");
        ServiceBusReceivedMessage held = next(receiver);
        assertNothingComes(queue("orders").receiver());
        receiver.complete(held).block(PATIENCE);
        queue("orders").assertEmpty();
    }

    @Test
    void competingReceiversGetDisjointMessages() {
        List<ServiceBusMessage> sent = messages(100);
        sender("orders").sendMessages(sent).block(PATIENCE);
        List<String> received = Flux.range(0, 4).flatMap(number -> {
            ServiceBusReceiverAsyncClient receiver = receiver("orders");
            return receiver.receiveMessages().concatMap(one -> receiver.complete(one).thenReturn(one.getMessageId()));
        }).take(100).collectList().block(PATIENCE);
        assertEquals(sentIds(sent).stream().sorted().toList(), received.stream().sorted().toList());
        Queue queue = queue("orders");
        eventually("the removal of all messages", () -> queue.peek().isEmpty());
    }

    @Test
    void threeAbandonedDeliveriesDeadLetterAMessage() {
        queue("brief").send(message("body"));
        ServiceBusReceiverAsyncClient receiver = receiver("brief");
        List<Long> counts = receiver.receiveMessages()
            .concatMap(one -> receiver.abandon(one).thenReturn(one.getDeliveryCount())).take(3).collectList()
            .block(PATIENCE);
        assertEquals(List.of(0L, 1L, 2L), counts);
        assertEquals("MaxDeliveryCountExceeded", queue("brief").takeDead().getDeadLetterReason());
    }

    @Test
    void messagesThatAreSentWithATimeComeByTime() throws Exception {
        OffsetDateTime now = OffsetDateTime.now();
        ServiceBusMessage second = message("second").setScheduledEnqueueTime(now.plusHours(2));
        ServiceBusMessage first = message("first").setScheduledEnqueueTime(now.plusHours(1));
        sender("orders").sendMessages(List.of(second, first)).block(PATIENCE);
        broker.advance("PT2H");
        assertEquals(sentIds(List.of(first, second)), receivedIds(queue("orders").take(2)));
    }

    @Test
    void aMessageExpiresWhenItsDayHasPassed() throws Exception {
        ServiceBusMessage sent = message("body");
        sender("orders").sendMessage(sent).block(PATIENCE);
        broker.advance("P1D");
        assertEquals("TTLExpiredException", queue("orders").takeDead().getDeadLetterReason());
    }

    @Test
    void aBatchIsCheckedMessageByMessage() {
        ServiceBusMessage first = message("first");
        ServiceBusMessage again = message("again").setMessageId(first.getMessageId());
        ServiceBusMessage second = message("second");
        sender("once").sendMessages(List.of(first, again, second)).block(PATIENCE);
        assertEquals(sentIds(List.of(first, second)), receivedIds(queue("once").take(2)));
        queue("once").assertEmpty();
    }

    @Test
    void aSecondMessageWithAnIdIsAcceptedAndDropped() {
        ServiceBusMessage first = message("first");
        ServiceBusSenderAsyncClient sender = sender("once");
        sender.sendMessage(first).then(sender.sendMessage(message("again").setMessageId(first.getMessageId())))
            .block(PATIENCE);
        assertEquals("first", queue("once").take(1).get(0).getBody().toString());
        queue("once").assertEmpty();
    }

    @Test
    void aMessageArrivesWhereItsQueueForwardsTo() {
        ServiceBusMessage sent = message("body");
        sender("forward").sendMessage(sent).block(PATIENCE);
        assertEquals(sentIds(List.of(sent)), receivedIds(queue("target").take(1)));
    }

    @Test
    void aDeadLetterArrivesWithItsReasonAndItsSource() {
        sender("mortal").sendMessage(message("body")).block(PATIENCE);
        ServiceBusReceiverAsyncClient receiver = receiver("mortal");
        receiver.deadLetter(next(receiver), new DeadLetterOptions().setDeadLetterReason("broken")).block(PATIENCE);
        ServiceBusReceivedMessage dead = queue("target").take(1).get(0);
        assertEquals("broken", dead.getDeadLetterReason());
        assertEquals("mortal", dead.getDeadLetterSource());
    }

    @Test
    void aReceiverWhereMessagesGoOnIsRefused() {
        RuntimeException refused = assertThrows(RuntimeException.class, () -> next(receiver("forward")));
        assertTrue(refused.getMessage().contains("auto-forwarding"), refused::getMessage);
    }

    @Test
    void aMissingQueueIsNotFound() {
        ServiceBusException refused = assertThrows(ServiceBusException.class,
            () -> sender("missing").sendMessage(message("body")).block(PATIENCE));
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, refused.getReason());
    }

    @Test
    void aWrongKeyIsUnauthorized() {
        String wrong = broker.connectionString.replace("AccessKey=", "AccessKey=wrong");
        ServiceBusSenderAsyncClient stranger = open(new ServiceBusClientBuilder().connectionString(wrong)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0)).sender().queueName("orders").buildAsyncClient());
        ServiceBusException refused =
            assertThrows(ServiceBusException.class, () -> stranger.sendMessage(message("body")).block(PATIENCE));
        assertEquals(ServiceBusFailureReason.UNAUTHORIZED, refused.getReason());
    }

    @Test
    void aCommitMovesAMessageFromOneQueueToAnother() {
        queue("orders").send(message("step one"));
        ServiceBusClientBuilder shared = builder().enableCrossEntityTransactions();
        ServiceBusReceiverAsyncClient receiver = open(shared.receiver().queueName("orders").disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient());
        ServiceBusSenderAsyncClient sender = open(shared.sender().queueName("target").buildAsyncClient());
        ServiceBusMessage next = message("step two");
        receiver.receiveMessages().concatMap(one -> receiver.createTransaction().flatMap(transaction ->
            receiver.complete(one, new CompleteOptions().setTransactionContext(transaction))
                .then(sender.sendMessage(next, transaction)).then(receiver.commitTransaction(transaction)))
            .thenReturn(one)).next().block(PATIENCE);
        queue("orders").assertEmpty();
        assertEquals(sentIds(List.of(next)), receivedIds(queue("target").take(1)));
    }

    @Test
    void aDisabledQueueRefusesWithTheErrorForThat() {
        assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED,
            reasonOf(sender("closed").sendMessage(message("body"))));
    }
}
