package interop

// Settling: complete, abandon, dead-letter, defer; the delivery count and the limit of deliveries.
// This SDK shows the number of the present delivery, the first being 1 (docs/spec/amqp.md#4.4).

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestACompletedMessageNeverComesBack(t *testing.T) {
	q := cleared(t, "plain")
	q.send(message("body"))
	receiver := q.receiver(nil)
	complete(t, receiver, receiveOne(t, receiver))
	q.mustBeEmpty()
	equal(t, "dead letters", len(q.peekDead()), 0)
}

func TestAnAbandonedMessageComesBackWithItsCountRaisedAndPropertiesModified(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	sent.ApplicationProperties = map[string]any{"kept": "old", "changed": "old"}
	q.send(sent)
	receiver := q.receiver(nil)
	first := receiveOne(t, receiver)
	equal(t, "first count", first.DeliveryCount, uint32(1))
	must(t, receiver.AbandonMessage(within(t, patience), first, &azservicebus.AbandonMessageOptions{
		PropertiesToModify: map[string]any{"changed": "new", "added": int64(7)},
	}))
	second := receiveOne(t, receiver)
	equal(t, "id", second.MessageID, *sent.MessageID)
	equal(t, "number", *second.SequenceNumber, *first.SequenceNumber)
	equal(t, "second count", second.DeliveryCount, uint32(2))
	equal(t, "properties", second.ApplicationProperties, map[string]any{"kept": "old", "changed": "new", "added": int64(7)})
	if second.LockToken == first.LockToken {
		t.Fatal("two deliveries share a lock token")
	}
	complete(t, receiver, second)
}

func TestTheDeadLetterQueueTellsReasonDescriptionAndModifiedProperties(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("bad")
	sent.ApplicationProperties = map[string]any{"kept": "yes"}
	q.send(sent)
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	must(t, receiver.DeadLetterMessage(within(t, patience), received, &azservicebus.DeadLetterOptions{
		Reason:             pointer("Unreadable"),
		ErrorDescription:   pointer("The body is not JSON."),
		PropertiesToModify: map[string]any{"stage": "parse"},
	}))
	dead := q.takeDead()
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "number", *dead.SequenceNumber, *received.SequenceNumber)
	equal(t, "reason", *dead.DeadLetterReason, "Unreadable")
	equal(t, "description", *dead.DeadLetterErrorDescription, "The body is not JSON.")
	equal(t, "kept", dead.ApplicationProperties["kept"], "yes")
	equal(t, "stage", dead.ApplicationProperties["stage"], "parse")
	q.mustBeEmpty()
}

func TestAMessageCanBeDeadLetteredWithoutAReason(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	q.send(sent)
	receiver := q.receiver(nil)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveOne(t, receiver), nil))
	equal(t, "id", q.takeDead().MessageID, *sent.MessageID)
}

func TestADeadLetterIsReceivedInPeekLockAndCompleted(t *testing.T) {
	q := cleared(t, "plain")
	q.send(message("body"))
	receiver := q.receiver(nil)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveOne(t, receiver), nil))
	deadReceiver := q.receiver(deadLetter)
	complete(t, deadReceiver, receiveOne(t, deadReceiver))
	equal(t, "dead letters", len(q.peekDead()), 0)
}

// deferOne sends and defers one message and returns its number.
func deferOne(q queue, receiver *azservicebus.Receiver, sent *azservicebus.Message) int64 {
	q.send(sent)
	received := receiveOne(q.t, receiver)
	must(q.t, receiver.DeferMessage(within(q.t, patience), received, nil))
	return *received.SequenceNumber
}

func receiveDeferred(t *testing.T, receiver *azservicebus.Receiver, number int64) *azservicebus.ReceivedMessage {
	t.Helper()
	deferred, err := receiver.ReceiveDeferredMessages(within(t, patience), []int64{number}, nil)
	must(t, err)
	equal(t, "deferred messages", len(deferred), 1)
	return deferred[0]
}

func TestADeferredMessageComesOnlyByItsNumber(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	sent := message("later")
	number := deferOne(q, receiver, sent)
	equal(t, "state", q.peek()[0].State, azservicebus.MessageStateDeferred)
	mustGetNothing(t, receiver)
	deferred := receiveDeferred(t, receiver, number)
	equal(t, "id", deferred.MessageID, *sent.MessageID)
	complete(t, receiver, deferred)
	q.mustBeEmpty()
}

func TestADeferRaisesTheDeliveryCountAndDoesNotDeadLetter(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	number := deferOne(q, receiver, message("later"))
	// What is peeked is no delivery of its own, of which this SDK knows nothing.
	equal(t, "count in a peek", q.peek()[0].DeliveryCount, uint32(2))
	again := receiveDeferred(t, receiver, number)
	equal(t, "count of the second delivery", again.DeliveryCount, uint32(2))
	must(t, receiver.DeferMessage(within(t, patience), again, nil))
	third := receiveDeferred(t, receiver, number)
	equal(t, "count of the third delivery", third.DeliveryCount, uint32(3))
	// It has been deferred twice; the third time is the queue's limit, which a defer does not mind.
	must(t, receiver.DeferMessage(within(t, patience), third, nil))
	deleting := q.receiver(receiveAndDelete)
	equal(t, "count of the last delivery", receiveDeferred(t, deleting, number).DeliveryCount, uint32(4))
	q.mustBeEmpty()
}

func TestDeadLetteringDoesNotRaiseTheDeliveryCount(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	number := deferOne(q, receiver, message("later"))
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveDeferred(t, receiver, number), nil))
	equal(t, "count", q.takeDead().DeliveryCount, uint32(2))
}

func TestADeferredMessageCanBeAbandonedAndDeadLettered(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	number := deferOne(q, receiver, message("later"))
	must(t, receiver.AbandonMessage(within(t, patience), receiveDeferred(t, receiver, number), nil))
	equal(t, "state", q.peek()[0].State, azservicebus.MessageStateDeferred)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveDeferred(t, receiver, number), &azservicebus.DeadLetterOptions{
		Reason:           pointer("Deferred too long"),
		ErrorDescription: pointer("Given up."),
	}))
	dead := q.takeDead()
	equal(t, "reason", *dead.DeadLetterReason, "Deferred too long")
	equal(t, "description", *dead.DeadLetterErrorDescription, "Given up.")
}

// The SDK has no code for a missing message: over `$management` it knows the status only.
func TestAnUnknownDeferredNumberIsNotFound(t *testing.T) {
	q := cleared(t, "plain")
	_, err := q.receiver(nil).ReceiveDeferredMessages(within(t, patience), []int64{1 << 40}, nil)
	failsWith(t, err, azservicebus.CodeNotFound)
}

func TestThreeAbandonedDeliveriesDeadLetterAMessage(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	q.send(sent)
	receiver := q.receiver(nil)
	for expected := uint32(1); expected <= 3; expected++ {
		received := receiveOne(t, receiver)
		equal(t, "count", received.DeliveryCount, expected)
		must(t, receiver.AbandonMessage(within(t, patience), received, nil))
	}
	dead := q.takeDead()
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "reason", *dead.DeadLetterReason, "MaxDeliveryCountExceeded")
	if !strings.Contains(*dead.DeadLetterErrorDescription, "after 3 delivery attempts") {
		t.Fatal(*dead.DeadLetterErrorDescription)
	}
	q.mustBeEmpty()
}
