package interop

// Receiving in both modes, browsing, and several receivers on one queue.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestPeekLockHidesAMessageUntilItIsCompleted(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	q.send(sent)
	holder := q.receiver(nil)
	received := receiveOne(t, holder)
	equal(t, "id", received.MessageID, *sent.MessageID)
	if received.LockToken == [16]byte{} || !received.LockedUntil.After(time.Now()) {
		t.Fatalf("token %x locked until %s", received.LockToken, received.LockedUntil)
	}
	mustGetNothing(t, q.receiver(nil))
	complete(t, holder, received)
	q.mustBeEmpty()
}

func TestReceiveAndDeleteRemovesAtDelivery(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	q.send(sent)
	receiver := q.receiver(receiveAndDelete)
	received := receiveOne(t, receiver)
	equal(t, "id", received.MessageID, *sent.MessageID)
	if received.LockedUntil != nil {
		t.Fatalf("locked until %s", received.LockedUntil)
	}
	q.mustBeEmpty()
}

func TestPeekShowsMessagesInOrderAndTakesNothing(t *testing.T) {
	q := cleared(t, "plain")
	sent := messages(5)
	q.send(sent...)
	receiver := q.receiver(nil)
	first, err := receiver.PeekMessages(within(t, patience), 3, nil)
	must(t, err)
	rest, err := receiver.PeekMessages(within(t, patience), 10, nil)
	must(t, err)
	peeked := slices.Concat(first, rest)
	equal(t, "ids", receivedIDs(peeked), sentIDs(sent))
	for _, one := range peeked {
		equal(t, "state", one.State, azservicebus.MessageStateActive)
		equal(t, "count", one.DeliveryCount, uint32(1))
		equal(t, "end of its lock", endOfLock(t, one), time.Time{})
	}
	received := q.take(5)
	equal(t, "ids", receivedIDs(received), sentIDs(sent))
}

func TestPeekShowsAMessageThatIsLocked(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	q.send(sent)
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	equal(t, "ids", receivedIDs(q.peek()), []string{*sent.MessageID})
	complete(t, receiver, received)
}

func TestAReceiverThatWaitedInVainStillWorks(t *testing.T) {
	q := cleared(t, "plain")
	receiver := q.receiver(nil)
	mustGetNothing(t, receiver)
	sent := messages(3)
	q.send(sent...)
	// Until the next call the SDK releases what arrives; that must not count as a delivery.
	for range sent {
		received := receiveOne(t, receiver)
		equal(t, "count", received.DeliveryCount, uint32(1))
		complete(t, receiver, received)
	}
	q.mustBeEmpty()
}

func TestCompetingReceiversGetDisjointMessages(t *testing.T) {
	q := cleared(t, "compete")
	sent := messages(100)
	q.send(sent...)
	var lock sync.Mutex
	var got []string
	var group sync.WaitGroup
	for range 4 {
		other := queue{t, connect(t, connectionString()), q.name}
		receiver := other.receiver(nil)
		group.Go(func() {
			for _, id := range completeUntilEmpty(t, receiver) {
				lock.Lock()
				got = append(got, id)
				lock.Unlock()
			}
		})
	}
	group.Wait()
	want := sentIDs(sent)
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "ids", got, want)
	q.mustBeEmpty()
}

// completeUntilEmpty works like a consumer until nothing comes for a second.
func completeUntilEmpty(t *testing.T, receiver *azservicebus.Receiver) []string {
	var done []string
	for {
		batch, err := receiver.ReceiveMessages(within(t, time.Second), 5, nil)
		if errors.Is(err, context.DeadlineExceeded) {
			return done
		}
		if err != nil {
			t.Error(err)
			return done
		}
		for _, one := range batch {
			if err := receiver.CompleteMessage(within(t, patience), one, nil); err != nil {
				t.Error(err)
			}
			done = append(done, one.MessageID)
		}
	}
}
