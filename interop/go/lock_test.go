package interop

// Locks: what the SDK says when one has run out, how renewal keeps one, and settlement by token alone.

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestSettlingAfterTheLockRanOutIsLockLost(t *testing.T) {
	q := cleared(t, "shortlock")
	sent := message("body")
	q.send(sent)
	late := q.receiver(nil)
	received := receiveOne(t, late)
	waitUntilPassed(*received.LockedUntil)
	failsWith(t, late.CompleteMessage(within(t, patience), received, nil), azservicebus.CodeLockLost)
	nextOne := q.receiver(nil)
	again := receiveOne(t, nextOne)
	equal(t, "id", again.MessageID, *sent.MessageID)
	equal(t, "count", again.DeliveryCount, uint32(2))
	complete(t, nextOne, again)
	q.mustBeEmpty()
}

func TestALateSettlementDoesNotTouchTheNextHolder(t *testing.T) {
	q := cleared(t, "shortlock")
	q.send(message("body"))
	late := q.receiver(nil)
	received := receiveOne(t, late)
	nextOne := q.receiver(nil)
	again := receiveOne(t, nextOne)
	failsWith(t, late.AbandonMessage(within(t, patience), received, nil), azservicebus.CodeLockLost)
	equal(t, "messages", len(q.peek()), 1)
	complete(t, nextOne, again)
	q.mustBeEmpty()
}

func TestARenewedLockOutlivesTheFirstOne(t *testing.T) {
	q := cleared(t, "shortlock")
	q.send(message("body"))
	holder := q.receiver(nil)
	received := receiveOne(t, holder)
	first := *received.LockedUntil
	for received.LockedUntil.Before(first.Add(2 * time.Second)) {
		mustGetNothing(t, q.receiver(nil))
		must(t, holder.RenewMessageLock(within(t, patience), received, nil))
	}
	waitUntilPassed(first)
	mustGetNothing(t, q.receiver(nil))
	complete(t, holder, received)
	q.mustBeEmpty()
}

func TestRenewingALockThatRanOutIsLockLost(t *testing.T) {
	q := cleared(t, "shortlock")
	q.send(message("body"))
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	waitUntilPassed(*received.LockedUntil)
	failsWith(t, receiver.RenewMessageLock(within(t, patience), received, nil), azservicebus.CodeLockLost)
}

func TestALockOutlivesItsConnectionAndSettlesByItsToken(t *testing.T) {
	q := cleared(t, "plain")
	q.send(message("body"))
	holder := queue{t, connect(t, connectionString()), q.name}
	token := receiveOne(t, holder.receiver(nil)).LockToken
	must(t, holder.client.Close(context.Background()))
	receiver := q.receiver(nil)
	complete(t, receiver, &azservicebus.ReceivedMessage{LockToken: token})
	q.mustBeEmpty()
	err := receiver.CompleteMessage(within(t, patience), &azservicebus.ReceivedMessage{LockToken: token}, nil)
	failsWith(t, err, azservicebus.CodeLockLost)
}
