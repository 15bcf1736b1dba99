package interop

// Forwarding: messages go on to another queue by themselves.

import (
	"testing"
)

func TestAMessageArrivesWhereItsQueueForwardsTo(t *testing.T) {
	q := cleared(t, "target")
	sent := message("hello")
	sender, err := q.client.NewSender("go-forward", nil)
	must(t, err)
	must(t, sender.SendMessage(within(t, patience), sent, nil))
	received := q.take(1)[0]
	equal(t, "id", received.MessageID, *sent.MessageID)
	equal(t, "body", string(received.Body), "hello")
}
