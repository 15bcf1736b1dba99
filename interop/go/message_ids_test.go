package interop

// Message ids: a message that comes without one gets one from the broker, and keeps it. This SDK sends single messages
// as they are; to those of a batch, and to those that it schedules by operation, it gives an id itself.

import (
	"regexp"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var assignedID = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

func withoutID(body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body)}
}

// mustBeAssigned checks that every id is one that the broker gives, and that no two are the same.
func mustBeAssigned(t *testing.T, ids ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, id := range ids {
		if !assignedID.MatchString(id) || seen[id] {
			t.Fatalf("the broker gave the ids %q", ids)
		}
		seen[id] = true
	}
}

func TestAMessageWithoutAnIDGetsOneThatStays(t *testing.T) {
	q := cleared(t, "plain")
	q.send(withoutID("body"))
	id := q.peek()[0].MessageID
	mustBeAssigned(t, id)
	receiver := q.receiver(nil)
	first := receiveOne(t, receiver)
	equal(t, "id of the first delivery", first.MessageID, id)
	must(t, receiver.AbandonMessage(within(t, patience), first, nil))
	second := receiveOne(t, receiver)
	equal(t, "id of the second delivery", second.MessageID, id)
	must(t, receiver.DeferMessage(within(t, patience), second, nil))
	deferred := receiveDeferred(t, receiver, *second.SequenceNumber)
	equal(t, "id of the deferred message", deferred.MessageID, id)
	must(t, receiver.DeadLetterMessage(within(t, patience), deferred, nil))
	equal(t, "id of the peeked dead letter", q.peekDead()[0].MessageID, id)
	equal(t, "id of the dead letter", q.takeDead().MessageID, id)
}

func TestEachMessageGetsAnIDOfItsOwn(t *testing.T) {
	q := cleared(t, "plain")
	q.send(withoutID("same"), withoutID("same"), withoutID("same"))
	mustBeAssigned(t, receivedIDs(q.take(3))...)
}

func TestAScheduledMessageHasItsIDBeforeItsTime(t *testing.T) {
	broker, q := virtual(t)
	sent := withoutID("body")
	sent.ScheduledEnqueueTime = pointer(time.Now().Add(time.Hour))
	q.send(sent)
	waiting := receivedIDs(q.peek())
	mustBeAssigned(t, waiting...)
	broker.advance("PT61M")
	equal(t, "ids", receivedIDs(q.take(1)), waiting)
}

func TestMessagesWithoutAnIDAreNoDuplicates(t *testing.T) {
	q := cleared(t, "once")
	q.send(withoutID("same"), withoutID("same"))
	mustBeAssigned(t, receivedIDs(q.take(2))...)
}

func TestCopiesAndForwardsHaveTheIDOfTheMessage(t *testing.T) {
	_, subscription := subscriptions(t)
	all := subscription("all")
	sent := withoutID("body")
	sent.Subject = pointer("archived")
	publish(t, all.client, sent)
	id := all.take().MessageID
	mustBeAssigned(t, id)
	forwarded := queue{t, all.client, "archive"}.take(1)[0]
	equal(t, "id of the forwarded copy", forwarded.MessageID, id)
}

func TestAnIDThatTheSenderGaveIsKeptEvenWhenItIsEmpty(t *testing.T) {
	q := cleared(t, "plain")
	for _, id := range []string{"mine", ""} {
		sent := withoutID("body")
		sent.MessageID = &id
		q.send(sent)
		equal(t, "id", q.take(1)[0].MessageID, id)
	}
}
