package interop

// Scheduled messages: by operation and by property, seen in a peek, cancelled, received at their time.

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// in gives a time so far ahead, in whole milliseconds as the wire has them.
func in(ahead time.Duration) time.Time {
	return time.Now().Add(ahead).UTC().Truncate(time.Millisecond)
}

func TestScheduledMessagesComeAtTheirTimeAndCancelledOnesDoNot(t *testing.T) {
	q := cleared(t, "plain")
	due := in(3 * time.Second)
	sent := messages(3)
	sender := q.sender()
	numbers, err := sender.ScheduleMessages(within(t, patience), sent, due, nil)
	must(t, err)
	peeked := q.peek()
	equal(t, "how many are scheduled", len(peeked), len(numbers))
	for place, one := range peeked {
		equal(t, "number", *one.SequenceNumber, numbers[place])
		equal(t, "state", one.State, azservicebus.MessageStateScheduled)
	}
	must(t, sender.CancelScheduledMessages(within(t, patience), numbers[1:2], nil))
	for _, missing := range [][]int64{numbers[:2], {-1}} {
		err = sender.CancelScheduledMessages(within(t, patience), missing, nil)
		failsWith(t, err, azservicebus.CodeNotFound)
	}
	received := q.take(2)
	equal(t, "ids", receivedIDs(received), []string{*sent[0].MessageID, *sent[2].MessageID})
	for _, one := range received {
		equal(t, "scheduled time", one.ScheduledEnqueueTime.UTC(), due)
		if one.EnqueuedTime.Before(due) {
			t.Fatalf("enqueued at %v, before %v", one.EnqueuedTime, due)
		}
		if *one.SequenceNumber <= numbers[2] {
			t.Fatalf("number %d is not a new one", *one.SequenceNumber)
		}
	}
	q.mustBeEmpty()
}

func TestMessagesThatAreSentWithATimeComeByTime(t *testing.T) {
	q := cleared(t, "plain")
	second, first, past := message("second"), message("first"), message("past")
	second.ScheduledEnqueueTime = pointer(in(3 * time.Second))
	first.ScheduledEnqueueTime = pointer(in(2 * time.Second))
	past.ScheduledEnqueueTime = pointer(in(-time.Minute))
	q.send(second, first, past)
	equal(t, "ids", receivedIDs(q.take(3)), sentIDs([]*azservicebus.Message{past, first, second}))
}
