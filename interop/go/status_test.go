package interop

// The status of a queue, each way, and one that vanishes when nobody uses it.

import (
	"context"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// saysDisabled checks the text, since this SDK has no code for a queue that is disabled.
func saysDisabled(t *testing.T, operation, name string) {
	t.Helper()
	_, q := virtual(t)
	err := operations[operation](t, q.client, name)
	if err == nil || !strings.Contains(err.Error(), "com.microsoft:entity-disabled") {
		t.Fatalf("got error %v", err)
	}
}

func TestAQueueThatRefusesSendersSaysThatItIsDisabled(t *testing.T) {
	saysDisabled(t, "send", "closed")
	saysDisabled(t, "send", "no-entry")
}

func TestAQueueThatRefusesReceiversSaysThatItIsDisabled(t *testing.T) {
	saysDisabled(t, "receive", "closed")
	saysDisabled(t, "receive", "no-exit")
}

func TestAQueueThatRefusesOnlyReceiversTakesMessages(t *testing.T) {
	_, q := virtual(t)
	queue{t, q.client, "no-exit"}.send(message("body"))
}

func TestAQueueThatRefusesOnlySendersIsReceivedFrom(t *testing.T) {
	_, q := virtual(t)
	mustGetNothing(t, queue{t, q.client, "no-entry"}.receiver(nil))
}

func TestAQueueVanishesWhenNobodyHasUsedItForItsFiveMinutes(t *testing.T) {
	broker, q := virtual(t)
	fleeting := queue{t, q.client, "fleeting"}
	sent := message("body")
	sender, receiver := fleeting.sender(), fleeting.receiver(nil)
	must(t, sender.SendMessage(within(t, patience), sent, nil))
	broker.advance("PT4M")
	received := receiveOne(t, receiver)
	equal(t, "id", received.MessageID, *sent.MessageID)
	broker.advance("PT4M")
	complete(t, receiver, received)
	must(t, sender.SendMessage(within(t, patience), message("body"), nil))
	must(t, sender.Close(context.Background()))
	must(t, receiver.Close(context.Background()))
	broker.advance("PT5M")
	failsWith(t, operations["send"](t, q.client, "fleeting"), azservicebus.CodeNotFound)
}
