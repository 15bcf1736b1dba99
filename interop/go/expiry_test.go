package interop

// Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving.

import (
	"math"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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
		creation, expiry := times(t, received)
		equal(t, "announced expiry", expiry, received.ExpiresAt.UTC())
		// The sender gave no time of creation.
		equal(t, "creation", creation, received.EnqueuedTime.UTC())
	}
}

// times are those that a message with a time to live has: its creation and its expiry.
func times(t *testing.T, received *azservicebus.ReceivedMessage) (time.Time, time.Time) {
	t.Helper()
	properties := received.RawAMQPMessage.Properties
	if properties.CreationTime == nil || properties.AbsoluteExpiryTime == nil {
		t.Fatalf("created at %v, expires at %v", properties.CreationTime, properties.AbsoluteExpiryTime)
	}
	return properties.CreationTime.UTC(), properties.AbsoluteExpiryTime.UTC()
}

func TestTheCreationTimeOfTheSenderStaysAndTheExpiryFollowsIt(t *testing.T) {
	q := cleared(t, "plain")
	creation := in(-10 * time.Minute)
	for place, ttl := range []time.Duration{5 * time.Minute, 2 * time.Hour} {
		must(t, q.sender().SendAMQPAnnotatedMessage(within(t, patience), timed(creation, ttl), nil))
		received := q.take(1)[0]
		effective := []time.Duration{5 * time.Minute, time.Hour}[place]
		equal(t, "time to live", *received.TimeToLive, effective)
		shown, expiry := times(t, received)
		equal(t, "creation", shown, creation)
		equal(t, "expiry", expiry, creation.Add(effective))
	}
}

// A header says at most 49.7 days. What is longer is said by the two times alone, which this SDK does not look at.
func TestATimeToLiveOfSixtyDaysIsKeptInTheTimes(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	q := queue{t, connect(t, connectionString()), fresh("long")}
	_, err := client.CreateQueue(ctx, q.name, nil)
	must(t, err)
	creation, longest := in(0), time.Duration(math.MaxUint32)*time.Millisecond
	sent := timed(creation, longest)
	sent.Properties.AbsoluteExpiryTime = pointer(creation.AddDate(0, 0, 60))
	must(t, q.sender().SendAMQPAnnotatedMessage(ctx, sent, nil))
	received := q.take(1)[0]
	equal(t, "time to live", *received.TimeToLive, longest)
	shown, expiry := times(t, received)
	equal(t, "creation", shown, creation)
	equal(t, "expiry", expiry, creation.AddDate(0, 0, 60))
	_, err = client.DeleteQueue(ctx, q.name, nil)
	must(t, err)
}

// A queue whose messages live forever says of a message what its sender said, which may be nothing.
func TestAMessageThatLivesForeverHasTheTimesOfItsSender(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	q := queue{t, connect(t, connectionString()), fresh("forever")}
	_, err := client.CreateQueue(ctx, q.name, nil)
	must(t, err)
	q.send(message("body"))
	properties := q.take(1)[0].RawAMQPMessage.Properties
	equal(t, "times", []*time.Time{properties.CreationTime, properties.AbsoluteExpiryTime}, []*time.Time{nil, nil})
	_, err = client.DeleteQueue(ctx, q.name, nil)
	must(t, err)
}

func TestAMessageThatIsSentAgainKeepsItsTimeToLive(t *testing.T) {
	broker, q := virtual(t)
	limited := message("ten hours")
	limited.TimeToLive = pointer(10 * time.Hour)
	for want, sent := range map[time.Duration]*azservicebus.Message{
		10 * time.Hour: limited,
		// That of the queue.
		24 * time.Hour: message("a day"),
	} {
		q.send(sent)
		for range 3 {
			broker.advance("PT2H")
			received := q.take(1)[0]
			creation, expiry := times(t, received)
			equal(t, "time to live", *received.TimeToLive, want)
			equal(t, "creation", creation, received.EnqueuedTime.UTC())
			equal(t, "expiry", expiry, creation.Add(want))
			q.send(received.Message())
		}
		q.take(1)
	}
}

// timed is a message as only this SDK's own kind of message can be: with a time of creation.
func timed(creation time.Time, ttl time.Duration) *azservicebus.AMQPAnnotatedMessage {
	return &azservicebus.AMQPAnnotatedMessage{
		Body:       azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("body")}},
		Header:     &azservicebus.AMQPAnnotatedMessageHeader{TTL: ttl},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{CreationTime: &creation},
	}
}
