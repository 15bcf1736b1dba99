package interop

// Forwarding: messages and dead letters go on to another queue by themselves.

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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

func TestADeadLetterArrivesWithItsReasonAndItsSource(t *testing.T) {
	q := cleared(t, "target")
	source := queue{t, q.client, prefix + "-mortal"}
	sent := message("doomed")
	source.send(sent)
	receiver := source.receiver(nil)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveOne(t, receiver), &azservicebus.DeadLetterOptions{
		Reason: pointer("broken"),
	}))
	dead := q.take(1)[0]
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "reason", *dead.DeadLetterReason, "broken")
	equal(t, "source", *dead.DeadLetterSource, source.name)
}

func TestAReceiverWhereMessagesGoOnIsRefused(t *testing.T) {
	receiver, err := connect(t, connectionString()).NewReceiverForQueue(prefix+"-forward", nil)
	must(t, err)
	_, err = receiver.ReceiveMessages(within(t, patience), 1, nil)
	if err == nil || !strings.Contains(err.Error(), "auto-forwarding") {
		t.Fatalf("got error %v", err)
	}
}
