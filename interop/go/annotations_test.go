package interop

// Annotations: which ones a message carries, by how it came here and how it is looked at; and bodies that are none.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

const (
	enqueuedTime   = "x-opt-enqueued-time"
	sequenceNumber = "x-opt-sequence-number"
	lockedUntil    = "x-opt-locked-until"
	messageState   = "x-opt-message-state"
	scheduledTime  = "x-opt-scheduled-enqueue-time"
	enqueuedNumber = "x-opt-enqueue-sequence-number"
	lockToken      = "x-opt-lock-token"
)

func hasKeys(t *testing.T, what string, annotations map[any]any, keys ...string) {
	t.Helper()
	var found []string
	for key := range annotations {
		found = append(found, fmt.Sprint(key))
	}
	slices.Sort(found)
	slices.Sort(keys)
	equal(t, what, found, keys)
}

// endOfLock is until when a message is locked. Of a peeked message that is not, this is the zero time.
func endOfLock(t *testing.T, received *azservicebus.ReceivedMessage) time.Time {
	t.Helper()
	if received.LockedUntil == nil {
		t.Fatal("nothing is said of a lock")
	}
	return received.LockedUntil.UTC()
}

func TestAPlainDeliveryHasItsTimeNumberAndLock(t *testing.T) {
	q := cleared(t, "plain")
	q.send(message("body"))
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	raw := received.RawAMQPMessage
	hasKeys(t, "annotations", raw.MessageAnnotations, enqueuedTime, sequenceNumber, lockedUntil)
	hasKeys(t, "delivery annotations", raw.DeliveryAnnotations, lockToken)
	equal(t, "lock token", raw.DeliveryAnnotations[lockToken], any(amqp.UUID(received.LockToken)))
	equal(t, "length of the tag", len(raw.DeliveryTag), 16)
	complete(t, receiver, received)
}

// The SDK demands a tag on the first frame of each delivery, and is content with an empty one.
func TestADeliveryToDeleteHasNoLock(t *testing.T) {
	q := cleared(t, "large")
	sent := []*azservicebus.Message{message("one frame"), message("")}
	sent[1].Body = make([]byte, 200<<10)
	q.send(sent...)
	received := q.take(2)
	equal(t, "ids", receivedIDs(received), sentIDs(sent))
	for _, one := range received {
		raw := one.RawAMQPMessage
		hasKeys(t, "annotations", raw.MessageAnnotations, enqueuedTime, sequenceNumber)
		hasKeys(t, "delivery annotations", raw.DeliveryAnnotations)
		equal(t, "tag", raw.DeliveryTag, []byte{})
		equal(t, "lock token", one.LockToken, [16]byte{})
	}
}

func TestADeferredMessageHasAStateAndALock(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	deferred := receiveDeferred(t, receiver, deferOne(q, receiver, message("later")))
	raw := deferred.RawAMQPMessage
	hasKeys(t, "annotations", raw.MessageAnnotations, enqueuedTime, sequenceNumber, lockedUntil, messageState)
	hasKeys(t, "delivery annotations", raw.DeliveryAnnotations, lockToken)
	equal(t, "state", deferred.State, azservicebus.MessageStateDeferred)
	if end := endOfLock(t, deferred); !end.After(time.Now()) {
		t.Fatalf("locked until %s", end)
	}
	complete(t, receiver, deferred)
}

func TestAPeekedMessageIsLockedUntilItsDeadlineOrTheZeroTime(t *testing.T) {
	q := cleared(t, "plain")
	q.send(message("locked"), message("not locked"))
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	peeked := q.peek()
	for _, one := range peeked {
		hasKeys(t, "annotations", one.RawAMQPMessage.MessageAnnotations, enqueuedTime, sequenceNumber, lockedUntil, messageState)
		hasKeys(t, "delivery annotations", one.RawAMQPMessage.DeliveryAnnotations)
		equal(t, "state", one.State, azservicebus.MessageStateActive)
	}
	// The broker reckons each deadline from the time that is left, in whole milliseconds.
	if difference := endOfLock(t, peeked[0]).Sub(endOfLock(t, received)).Abs(); difference > 100*time.Millisecond {
		t.Fatalf("the deadlines differ by %s", difference)
	}
	equal(t, "time of the message that is not locked", endOfLock(t, peeked[1]), time.Time{})
	complete(t, receiver, received)
	q.take(1)
}

func TestAMessageThatWasScheduledSaysSo(t *testing.T) {
	broker, q := virtual(t)
	sent := message("by property")
	later := time.Now().Add(time.Hour)
	sent.ScheduledEnqueueTime = &later
	q.send(sent)
	_, err := q.sender().ScheduleMessages(within(t, patience), []*azservicebus.Message{message("by operation")}, later, nil)
	must(t, err)
	for _, waiting := range q.peek() {
		equal(t, "state while it waits", waiting.State, azservicebus.MessageStateScheduled)
		equal(t, "time while it waits", endOfLock(t, waiting), time.Time{})
	}
	broker.advance("PT61M")
	for _, received := range q.take(2) {
		hasKeys(t, "annotations", received.RawAMQPMessage.MessageAnnotations,
			enqueuedTime, sequenceNumber, scheduledTime, messageState)
		equal(t, "state", received.State, azservicebus.MessageStateScheduled)
	}
	past := message("past")
	past.ScheduledEnqueueTime = pointer(time.Now().Add(-time.Hour))
	q.send(past)
	received := q.take(1)[0]
	hasKeys(t, "annotations", received.RawAMQPMessage.MessageAnnotations, enqueuedTime, sequenceNumber, scheduledTime)
	equal(t, "state", received.State, azservicebus.MessageStateActive)
}

func TestAForwardedMessageHasTheNumberOfItsFirstEntity(t *testing.T) {
	q := cleared(t, "target")
	queue{t, q.client, prefix + "-forward"}.send(message("body"))
	received := q.take(1)[0]
	hasKeys(t, "annotations", received.RawAMQPMessage.MessageAnnotations, enqueuedTime, sequenceNumber, enqueuedNumber)
	if *received.EnqueuedSequenceNumber < 1 {
		t.Fatalf("number %d", *received.EnqueuedSequenceNumber)
	}
}

func TestTheSendersAnnotationsArrive(t *testing.T) {
	q := cleared(t, "plain")
	token := amqp.UUID{1, 2, 3}
	must(t, q.sender().SendAMQPAnnotatedMessage(within(t, patience), &azservicebus.AMQPAnnotatedMessage{
		Body:                azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("body")}},
		DeliveryAnnotations: map[any]any{"hop": int64(3), "by": "courier", lockToken: token},
		MessageAnnotations:  map[any]any{"colour": "red"},
	}, nil))
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	hasKeys(t, "annotations", received.RawAMQPMessage.MessageAnnotations, "colour", enqueuedTime, sequenceNumber, lockedUntil)
	equal(t, "colour", received.RawAMQPMessage.MessageAnnotations["colour"], any("red"))
	equal(t, "delivery annotations", received.RawAMQPMessage.DeliveryAnnotations,
		map[any]any{"hop": int64(3), "by": "courier", lockToken: amqp.UUID(received.LockToken)})
	if received.LockToken == token {
		t.Fatal("the token is the sender's")
	}
	complete(t, receiver, received)
}

func TestAMessageWithoutABodyArrivesWithoutOne(t *testing.T) {
	q := cleared(t, "plain")
	sent := &azservicebus.AMQPAnnotatedMessage{ApplicationProperties: map[string]any{"kind": "signal"}}
	must(t, q.sender().SendAMQPAnnotatedMessage(within(t, patience), sent, nil))
	receiver := q.receiver(nil)
	peeked, received := q.peek()[0], receiveOne(t, receiver)
	must(t, receiver.DeferMessage(within(t, patience), received, nil))
	deferred := receiveDeferred(t, receiver, *received.SequenceNumber)
	for _, one := range []*azservicebus.ReceivedMessage{peeked, received, deferred} {
		equal(t, "body", one.RawAMQPMessage.Body, azservicebus.AMQPAnnotatedMessageBody{})
		equal(t, "properties", one.ApplicationProperties, sent.ApplicationProperties)
	}
	complete(t, receiver, deferred)
}
