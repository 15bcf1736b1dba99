package interop

// Sending: one, a batch, many at once, large; and what the broker stamps on a message.

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestASentMessageArrivesWithItsBody(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("hello")
	q.send(sent)
	received := q.take(1)[0]
	equal(t, "id", received.MessageID, *sent.MessageID)
	equal(t, "body", string(received.Body), "hello")
}

func TestABatchArrivesWholeAndInOrder(t *testing.T) {
	q := cleared(t, "plain")
	sent := messages(10)
	sender := q.sender()
	batch, err := sender.NewMessageBatch(within(t, patience), nil)
	must(t, err)
	for _, one := range sent {
		must(t, batch.AddMessage(one, nil))
	}
	must(t, sender.SendMessageBatch(within(t, patience), batch, nil))
	received := q.take(10)
	equal(t, "ids", receivedIDs(received), sentIDs(sent))
	for place, one := range received {
		equal(t, "body", string(one.Body), fmt.Sprintf("number %d", place))
		equal(t, "number", *one.SequenceNumber, *received[0].SequenceNumber+int64(place))
	}
}

func TestAFullBatchTakesNoMoreAndIsSent(t *testing.T) {
	q := cleared(t, "plain")
	sender := q.sender()
	batch, err := sender.NewMessageBatch(within(t, patience), &azservicebus.MessageBatchOptions{MaxBytes: 4096})
	must(t, err)
	for err == nil {
		err = batch.AddMessage(message(strings.Repeat("x", 500)), nil)
	}
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) || batch.NumMessages() < 3 {
		t.Fatalf("%d messages and error %v", batch.NumMessages(), err)
	}
	must(t, sender.SendMessageBatch(within(t, patience), batch, nil))
	equal(t, "messages", len(q.take(int(batch.NumMessages()))), int(batch.NumMessages()))
}

func TestTwoHundredConcurrentSendsAllArriveOnce(t *testing.T) {
	q := cleared(t, "plain")
	sent := messages(200)
	sender := q.sender()
	ctx := within(t, patience)
	failures := make(chan error, len(sent))
	var group sync.WaitGroup
	for _, one := range sent {
		group.Go(func() { failures <- sender.SendMessage(ctx, one, nil) })
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		must(t, failure)
	}
	got, want := receivedIDs(q.take(200)), sentIDs(sent)
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "ids", got, want)
	q.mustBeEmpty()
}

func TestALargeMessageArrivesByteForByte(t *testing.T) {
	for _, size := range []int{200 << 10, 900 << 10} {
		t.Run(fmt.Sprintf("%d KiB", size>>10), func(t *testing.T) {
			q := cleared(t, "large")
			sent := message("")
			sent.Body = make([]byte, size)
			_, _ = rand.Read(sent.Body)
			q.send(sent)
			receiver := q.receiver(nil)
			received := receiveOne(t, receiver)
			if !bytes.Equal(received.Body, sent.Body) {
				t.Fatal("the body is not what was sent")
			}
			complete(t, receiver, received)
			q.mustBeEmpty()
		})
	}
}

func TestSequenceNumbersRiseAndEnqueuedTimesAreNow(t *testing.T) {
	q := cleared(t, "plain")
	before := time.Now().Add(-5 * time.Second)
	q.send(messages(5)...)
	received := q.take(5)
	for place, one := range received[1:] {
		if *one.SequenceNumber <= *received[place].SequenceNumber || one.EnqueuedTime.Before(*received[place].EnqueuedTime) {
			t.Fatalf("message %d is not after message %d", place+1, place)
		}
	}
	if *received[0].SequenceNumber < 1 || received[0].EnqueuedTime.Before(before) ||
		received[4].EnqueuedTime.After(time.Now().Add(5*time.Second)) {
		t.Fatalf("number %d enqueued at %s", *received[0].SequenceNumber, received[0].EnqueuedTime)
	}
}
