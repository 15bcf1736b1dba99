// Package interop runs azservicebus against Railbus.
//
// This file holds what every test needs: a client, and a queue with the steps that tests repeat. Waits are
// on what can be observed and fail the test after `patience`.
package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	prefix   = "go"
	patience = 30 * time.Second
	lull     = 500 * time.Millisecond
)

var (
	deadLetter       = &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
	receiveAndDelete = &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	deleteDead       = &azservicebus.ReceiverOptions{
		SubQueue:    azservicebus.SubQueueDeadLetter,
		ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete,
	}
)

func connectionString() string {
	return os.Getenv("RAILBUS_CONNECTION_STRING")
}

// connect gives a client that is closed at the end of the test.
func connect(t *testing.T, text string) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(text, nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %#v, want %#v", what, got, want)
	}
}

// code is that of the SDK's own error, empty without one.
func code(err error) azservicebus.Code {
	var sdkError *azservicebus.Error
	if errors.As(err, &sdkError) {
		return sdkError.Code
	}
	return ""
}

func failsWith(t *testing.T, err error, want azservicebus.Code) {
	t.Helper()
	if code(err) != want {
		t.Fatalf("got error %v, want code %s", err, want)
	}
}

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func pointer[T any](value T) *T { return &value }

// message has an id that no other test or run has used.
func message(body string) *azservicebus.Message {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return &azservicebus.Message{MessageID: pointer(fmt.Sprintf("%x", id)), Body: []byte(body)}
}

func messages(count int) []*azservicebus.Message {
	made := make([]*azservicebus.Message, count)
	for number := range made {
		made[number] = message(fmt.Sprintf("number %d", number))
	}
	return made
}

func sentIDs(sent []*azservicebus.Message) []string {
	var ids []string
	for _, one := range sent {
		ids = append(ids, *one.MessageID)
	}
	return ids
}

func receivedIDs(received []*azservicebus.ReceivedMessage) []string {
	var ids []string
	for _, one := range received {
		ids = append(ids, one.MessageID)
	}
	return ids
}

// queue is one queue of the broker, seen through a client of the SDK.
type queue struct {
	t      *testing.T
	client *azservicebus.Client
	name   string
}

// cleared gives the queue `go-<suffix>`, emptied.
func cleared(t *testing.T, suffix string) queue {
	t.Helper()
	q := queue{t, connect(t, connectionString()), prefix + "-" + suffix}
	q.clear(receiveAndDelete)
	q.clear(deleteDead)
	return q
}

// clear removes everything, also what an interrupted run left locked or deferred.
func (q queue) clear(options *azservicebus.ReceiverOptions) {
	q.t.Helper()
	receiver := q.receiver(options)
	defer func() { _ = receiver.Close(context.Background()) }()
	for {
		left := peek(q.t, receiver)
		if len(left) == 0 {
			return
		}
		var deferred []int64
		for _, one := range left {
			if one.State == azservicebus.MessageStateDeferred {
				deferred = append(deferred, *one.SequenceNumber)
			}
		}
		if len(deferred) > 0 {
			_, err := receiver.ReceiveDeferredMessages(within(q.t, patience), deferred, nil)
			if code(err) == azservicebus.CodeNotFound {
				// One of them is locked still.
				time.Sleep(lull)
				continue
			}
			must(q.t, err)
		} else {
			_, err := receiver.ReceiveMessages(within(q.t, time.Second), len(left), nil)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				q.t.Fatal(err)
			}
		}
	}
}

func (q queue) sender() *azservicebus.Sender {
	q.t.Helper()
	sender, err := q.client.NewSender(q.name, nil)
	must(q.t, err)
	q.t.Cleanup(func() { _ = sender.Close(context.Background()) })
	return sender
}

func (q queue) send(sent ...*azservicebus.Message) {
	q.t.Helper()
	sender := q.sender()
	for _, one := range sent {
		must(q.t, sender.SendMessage(within(q.t, patience), one, nil))
	}
}

func (q queue) receiver(options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	q.t.Helper()
	receiver, err := q.client.NewReceiverForQueue(q.name, options)
	must(q.t, err)
	q.t.Cleanup(func() { _ = receiver.Close(context.Background()) })
	return receiver
}

// take receives exactly `count` messages in receive-and-delete.
func (q queue) take(count int) []*azservicebus.ReceivedMessage {
	q.t.Helper()
	return receive(q.t, q.receiver(receiveAndDelete), count)
}

func (q queue) takeDead() *azservicebus.ReceivedMessage {
	q.t.Helper()
	return receive(q.t, q.receiver(deleteDead), 1)[0]
}

func (q queue) peek() []*azservicebus.ReceivedMessage {
	q.t.Helper()
	return peek(q.t, q.receiver(nil))
}

func (q queue) peekDead() []*azservicebus.ReceivedMessage {
	q.t.Helper()
	return peek(q.t, q.receiver(deadLetter))
}

func (q queue) mustBeEmpty() {
	q.t.Helper()
	if left := q.peek(); len(left) > 0 {
		q.t.Fatalf("%d messages are left in %s", len(left), q.name)
	}
}

func peek(t *testing.T, receiver *azservicebus.Receiver) []*azservicebus.ReceivedMessage {
	t.Helper()
	peeked, err := receiver.PeekMessages(within(t, patience), 250, &azservicebus.PeekMessagesOptions{
		FromSequenceNumber: pointer(int64(1)),
	})
	must(t, err)
	return peeked
}

// receive receives exactly `count` messages, in as many calls as the SDK needs.
func receive(t *testing.T, receiver *azservicebus.Receiver, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var received []*azservicebus.ReceivedMessage
	ctx := within(t, patience)
	for len(received) < count {
		batch, err := receiver.ReceiveMessages(ctx, count-len(received), nil)
		if err != nil {
			t.Fatalf("%d of %d messages: %v", len(received), count, err)
		}
		received = append(received, batch...)
	}
	return received
}

func receiveOne(t *testing.T, receiver *azservicebus.Receiver) *azservicebus.ReceivedMessage {
	t.Helper()
	return receive(t, receiver, 1)[0]
}

// mustGetNothing checks that no message comes for a while.
func mustGetNothing(t *testing.T, receiver *azservicebus.Receiver) {
	t.Helper()
	received, err := receiver.ReceiveMessages(within(t, lull), 1, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %d messages and error %v, want nothing", len(received), err)
	}
}

func complete(t *testing.T, receiver *azservicebus.Receiver, received *azservicebus.ReceivedMessage) {
	t.Helper()
	must(t, receiver.CompleteMessage(within(t, patience), received, nil))
}

// eventually asks `condition` until it holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %s", what, patience)
		}
	}
}

// waitUntilPassed waits until the wall clock is past a time that the broker has announced.
func waitUntilPassed(moment time.Time) {
	for !time.Now().After(moment) {
		time.Sleep(time.Until(moment) + 10*time.Millisecond)
	}
}
