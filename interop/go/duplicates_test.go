package interop

// Duplicate detection: a second message with an id is accepted and dropped.

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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

func TestABatchIsCheckedMessageByMessage(t *testing.T) {
	q := cleared(t, "once")
	first, second, again := message("first"), message("second"), message("again")
	again.MessageID = first.MessageID
	q.send(first)
	sender := q.sender()
	batch, err := sender.NewMessageBatch(within(t, patience), nil)
	must(t, err)
	for _, one := range []*azservicebus.Message{again, second, second} {
		must(t, batch.AddMessage(one, nil))
	}
	must(t, sender.SendMessageBatch(within(t, patience), batch, nil))
	equal(t, "ids", receivedIDs(q.take(2)), sentIDs([]*azservicebus.Message{first, second}))
	q.mustBeEmpty()
}
