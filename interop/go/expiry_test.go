package interop

// Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving.

import (
	"testing"
	"time"
)

func TestAnExpiredMessageGoesToTheDeadLetterQueue(t *testing.T) {
	q := cleared(t, "ttl")
	sent := message("too late")
	sent.TimeToLive = pointer(time.Second)
	q.send(sent)
	eventually(t, "the expiry", func() bool { return len(q.peekDead()) == 1 })
	dead := q.takeDead()
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "reason", *dead.DeadLetterReason, "TTLExpiredException")
	equal(t, "description", *dead.DeadLetterErrorDescription, "The message expired and was dead lettered.")
	q.mustBeEmpty()
}

func TestTheDefaultOfTheQueueDropsAnExpiredMessage(t *testing.T) {
	q := cleared(t, "ttl-drop")
	long := message("an hour")
	long.TimeToLive = pointer(time.Hour)
	q.send(message("default"), long)
	eventually(t, "the expiry of both messages", func() bool { return len(q.peek()) == 0 })
	equal(t, "dead letters", len(q.peekDead()), 0)
}

func TestAnUnexpiredMessageShowsWhenItWillExpire(t *testing.T) {
	q := cleared(t, "plain")
	limited := message("five minutes")
	limited.TimeToLive = pointer(5 * time.Minute)
	q.send(limited, message("default"))
	// The queue's own time to live of one hour is default and ceiling.
	for place, received := range q.take(2) {
		want := []time.Duration{5 * time.Minute, time.Hour}[place]
		equal(t, "time to live", *received.TimeToLive, want)
		equal(t, "expiry", received.ExpiresAt.UnixMilli(), received.EnqueuedTime.Add(want).UnixMilli())
		announced := received.RawAMQPMessage.Properties.AbsoluteExpiryTime
		equal(t, "announced expiry", announced.UnixMilli(), received.ExpiresAt.UnixMilli())
	}
}
