package interop

// Delayed retry: a message waits after a failed delivery, as its receiver or its queue's retry-backoff says.

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func retrying(t *testing.T, name string) (virtualBroker, queue) {
	t.Helper()
	broker := startVirtual(t, "retry.json")
	broker.freeze()
	return broker, queue{t, connect(t, broker.connectionString), name}
}

func TestAnAbandonedMessageWaitsAsItsReceiverSays(t *testing.T) {
	waits := map[string]func(*azservicebus.ReceivedMessage) any{
		"x-opt-delivery-delay": func(*azservicebus.ReceivedMessage) any { return int64(60_000) },
		"x-opt-delivery-time": func(received *azservicebus.ReceivedMessage) any {
			return received.EnqueuedTime.Add(time.Minute).UnixMilli()
		},
	}
	for key, value := range waits {
		t.Run(key, func(t *testing.T) {
			broker, q := retrying(t, "orders")
			failing, behind := message("failing"), message("behind")
			q.send(failing, behind)
			receiver := q.receiver(nil)
			first := receiveOne(t, receiver)
			must(t, receiver.AbandonMessage(within(t, patience), first, &azservicebus.AbandonMessageOptions{
				PropertiesToModify: map[string]any{key: value(first), "added": int64(7)},
			}))
			equal(t, "state", q.peek()[0].State, azservicebus.MessageStateScheduled)
			other := receiveOne(t, receiver)
			equal(t, "id of the other", other.MessageID, *behind.MessageID)
			complete(t, receiver, other)
			broker.advance("PT1M")
			again := receiveOne(t, receiver)
			equal(t, "id", again.MessageID, *failing.MessageID)
			equal(t, "number", *again.SequenceNumber, *first.SequenceNumber)
			equal(t, "count", again.DeliveryCount, uint32(2))
			equal(t, "properties", again.ApplicationProperties, map[string]any{"added": int64(7)})
			complete(t, receiver, again)
			q.mustBeEmpty()
		})
	}
}

func TestTheWaitGrowsWithEachFailedDelivery(t *testing.T) {
	broker, q := retrying(t, "backoff")
	q.send(message("body"))
	receiver := q.receiver(nil)
	for _, wait := range []string{"PT10S", "PT30S", "PT1M"} {
		must(t, receiver.AbandonMessage(within(t, patience), receiveOne(t, receiver), nil))
		equal(t, "state", q.peek()[0].State, azservicebus.MessageStateScheduled)
		broker.advance(wait)
	}
	last := receiveOne(t, receiver)
	equal(t, "count", last.DeliveryCount, uint32(4))
	complete(t, receiver, last)
	q.mustBeEmpty()
}
