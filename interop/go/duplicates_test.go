package interop

// Duplicate detection: a second message with an id is accepted and dropped.

import (
	"testing"
)

func TestASecondMessageWithAnIDIsAcceptedAndDropped(t *testing.T) {
	q := cleared(t, "once")
	first, again, other := message("first"), message("again"), message("other")
	again.MessageID = first.MessageID
	q.send(first)
	q.send(again)
	q.send(other)
	received := q.take(2)
	equal(t, "first id", received[0].MessageID, *first.MessageID)
	equal(t, "first body", string(received[0].Body), "first")
	equal(t, "other id", received[1].MessageID, *other.MessageID)
	q.send(again)
	q.mustBeEmpty()
}
