package interop

// The virtual clock: a day's time to live and a lock of five minutes, without sleeping.

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func virtual(t *testing.T) (virtualBroker, queue) {
	t.Helper()
	broker := startVirtual(t, "clock.json")
	return broker, queue{t, connect(t, broker.connectionString), "orders"}
}

func TestAMessageExpiresWhenItsDayHasPassed(t *testing.T) {
	broker, q := virtual(t)
	sent := message("body")
	q.send(sent)
	broker.advance("P1D")
	dead := q.takeDead()
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "reason", *dead.DeadLetterReason, "TTLExpiredException")
}

func TestALockIsLostWhenItsFiveMinutesHavePassed(t *testing.T) {
	broker, q := virtual(t)
	sent := message("body")
	q.send(sent)
	receiver := q.receiver(nil)
	late := receiveOne(t, receiver)
	broker.advance("PT5M")
	failsWith(t, receiver.CompleteMessage(within(t, patience), late, nil), azservicebus.CodeLockLost)
	again := receiveOne(t, receiver)
	equal(t, "id", again.MessageID, *sent.MessageID)
	equal(t, "count", again.DeliveryCount, uint32(2))
	complete(t, receiver, again)
}

func TestALockThatWasRenewedLastsFromItsRenewal(t *testing.T) {
	broker, q := virtual(t)
	q.send(message("body"))
	receiver := q.receiver(nil)
	held := receiveOne(t, receiver)
	broker.advance("PT4M")
	must(t, receiver.RenewMessageLock(within(t, patience), held, nil))
	broker.advance("PT4M")
	complete(t, receiver, held)
	q.mustBeEmpty()
}
