package interop

// Sizes: what is just below the limit of senders comes through in every way of receiving, and what is above stays out.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// What ../railbus.toml says.
	limit = 1 << 20
	// What a broker says that nobody configured.
	standardLimit = 256 << 10
)

// almost is a message that lacks less than 100 bytes to the limit: its sections take some, and no id is among them.
func almost(limit int) *azservicebus.Message {
	sent := &azservicebus.Message{Body: make([]byte, limit-100)}
	_, _ = rand.Read(sent.Body)
	return sent
}

func mustHaveBody(t *testing.T, received *azservicebus.ReceivedMessage, sent *azservicebus.Message) {
	t.Helper()
	if !bytes.Equal(received.Body, sent.Body) {
		t.Fatal("the body is not what was sent")
	}
}

func TestAMessageOfAlmostTheLimitComesInEveryWay(t *testing.T) {
	q := cleared(t, "large")
	first, second := almost(limit), almost(limit)
	q.send(first, second)
	mustHaveBody(t, q.peek()[0], first)
	receiver := q.receiver(nil)
	var numbers []int64
	for _, received := range receive(t, receiver, 2) {
		numbers = append(numbers, *received.SequenceNumber)
		must(t, receiver.DeferMessage(within(t, patience), received, nil))
	}
	// Both in one answer, which is twice as large as a message may be.
	deferred, err := receiver.ReceiveDeferredMessages(within(t, patience), numbers, nil)
	must(t, err)
	mustHaveBody(t, deferred[0], first)
	mustHaveBody(t, deferred[1], second)
	complete(t, receiver, deferred[0])
	must(t, receiver.DeadLetterMessage(within(t, patience), deferred[1], nil))
	mustHaveBody(t, q.takeDead(), second)
}

func TestAMessageOfAlmostTheLimitReachesASubscription(t *testing.T) {
	_, subscription := subscriptions(t)
	all := subscription("all")
	sent := almost(standardLimit)
	publish(t, all.client, sent)
	receiver := all.receiver(nil)
	received := receiveOne(t, receiver)
	mustHaveBody(t, received, sent)
	must(t, receiver.AbandonMessage(within(t, patience), received, nil))
	mustHaveBody(t, all.take(), sent)
}

func TestAMessageOfAlmostTheLimitReachesTheHolderOfItsSession(t *testing.T) {
	client := connect(t, connectionString())
	sent := almost(limit)
	sent.SessionID = pointer(newSession())
	sender, err := client.NewSender(sessionQueue, nil)
	must(t, err)
	must(t, sender.SendMessage(within(t, patience), sent, nil))
	must(t, sender.Close(context.Background()))
	receiver := accept(t, client, *sent.SessionID)
	received := receiveIn(t, receiver, 1)[0]
	mustHaveBody(t, received, sent)
	must(t, receiver.CompleteMessage(within(t, patience), received, nil))
}

// The SDK knows the limit from the broker's attach and sends nothing that is larger.
func TestAMessageAboveTheLimitIsNotSentAndTheNextOneIs(t *testing.T) {
	q := cleared(t, "large")
	sender := q.sender()
	tooLarge := &azservicebus.Message{Body: make([]byte, limit)}
	err := sender.SendMessage(within(t, patience), tooLarge, nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Fatalf("got error %v", err)
	}
	sent := message("small")
	must(t, sender.SendMessage(within(t, patience), sent, nil))
	equal(t, "ids", receivedIDs(q.take(1)), sentIDs([]*azservicebus.Message{sent}))
}
