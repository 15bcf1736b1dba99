package interop

// Subscriptions: actions and correlation filters, a copy's own life, forwarding, and what waits at the topic.
// This SDK has no rule manager.

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// subscriptionOf is a subscription of the topic, seen through a client of the SDK.
type subscriptionOf struct {
	t      *testing.T
	client *azservicebus.Client
	name   string
}

func subscriptions(t *testing.T) (virtualBroker, func(name string) subscriptionOf) {
	t.Helper()
	broker := startVirtual(t, "topics.json")
	client := connect(t, broker.connectionString)
	return broker, func(name string) subscriptionOf { return subscriptionOf{t, client, name} }
}

func (s subscriptionOf) receiver(options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	s.t.Helper()
	receiver, err := s.client.NewReceiverForSubscription(topic, s.name, options)
	must(s.t, err)
	return receiver
}

func (s subscriptionOf) take() *azservicebus.ReceivedMessage {
	s.t.Helper()
	return receiveOne(s.t, s.receiver(receiveAndDelete))
}

func (s subscriptionOf) takeDead() *azservicebus.ReceivedMessage {
	s.t.Helper()
	return receiveOne(s.t, s.receiver(deleteDead))
}

func (s subscriptionOf) peek() []string {
	s.t.Helper()
	return receivedIDs(peek(s.t, s.receiver(nil)))
}

func TestAnActionChangesTheCopyOfItsSubscriptionAlone(t *testing.T) {
	_, subscription := subscriptions(t)
	big := subscription("big")
	sent := order("body", "blue", 500)
	publish(t, big.client, sent)
	changed := big.take()
	equal(t, "id", changed.MessageID, *sent.MessageID)
	equal(t, "subject", *changed.Subject, "big order")
	equal(t, "properties", changed.ApplicationProperties, map[string]any{
		"amount": int64(500), "colour": "blue", "priority": "high", "RuleName": "amount",
	})
	unchanged := subscription("all").take()
	equal(t, "subject", *unchanged.Subject, "order")
	equal(t, "priority", unchanged.ApplicationProperties["priority"], nil)
}

func TestACorrelationFilterSelectsByAllThatItNames(t *testing.T) {
	_, subscription := subscriptions(t)
	red := subscription("red")
	offer, wanted := order("body", "red", 5), order("body", "red", 5)
	offer.Subject = pointer("offer")
	publish(t, red.client, order("body", "blue", 5), offer, wanted)
	equal(t, "selected", red.peek(), []string{*wanted.MessageID})
	equal(t, "count", len(subscription("all").peek()), 3)
}

func TestADeadLetterTellsItsReasonAndLeavesOtherCopiesAlone(t *testing.T) {
	_, subscription := subscriptions(t)
	red := subscription("red")
	poison := order("body", "red", 5)
	publish(t, red.client, poison)
	receiver := red.receiver(nil)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveOne(t, receiver), &azservicebus.DeadLetterOptions{
		Reason: pointer("bad"), ErrorDescription: pointer("very"),
	}))
	dead := red.takeDead()
	equal(t, "reason", *dead.DeadLetterReason, "bad")
	equal(t, "description", *dead.DeadLetterErrorDescription, "very")
	equal(t, "alive", subscription("all").take().MessageID, *poison.MessageID)
}

func TestACopyIsLockedAbandonedAndDeadLetteredLikeAQueuesMessage(t *testing.T) {
	_, subscription := subscriptions(t)
	all := subscription("all")
	sent := message("again")
	publish(t, all.client, sent)
	receiver := all.receiver(nil)
	for count := uint32(1); count <= 2; count++ {
		received := receiveOne(t, receiver)
		equal(t, "count", received.DeliveryCount, count)
		must(t, receiver.AbandonMessage(within(t, patience), received, nil))
	}
	dead := all.takeDead()
	equal(t, "id", dead.MessageID, *sent.MessageID)
	equal(t, "reason", *dead.DeadLetterReason, "MaxDeliveryCountExceeded")
}

func TestASubscriptionForwardsToAQueue(t *testing.T) {
	_, subscription := subscriptions(t)
	client := subscription("forwarding").client
	kept := message("kept")
	kept.Subject = pointer("archived")
	publish(t, client, kept)
	equal(t, "archived", receivedIDs(queue{t, client, "archive"}.take(1)), []string{*kept.MessageID})
}

func TestTheNextSessionOfASubscriptionIsAcceptedWithItsState(t *testing.T) {
	_, subscription := subscriptions(t)
	client := subscription("sessions").client
	one := message("body")
	one.SessionID = pointer("s")
	publish(t, client, one)
	receiver, err := client.AcceptNextSessionForSubscription(within(t, patience), topic, "sessions", nil)
	must(t, err)
	equal(t, "session", receiver.SessionID(), "s")
	must(t, receiver.SetSessionState(within(t, patience), []byte("seen"), nil))
	must(t, receiver.CompleteMessage(within(t, patience), receiveIn(t, receiver, 1)[0], nil))
	state, err := receiver.GetSessionState(within(t, patience), nil)
	must(t, err)
	equal(t, "state", string(state), "seen")
}

func TestWhatIsScheduledWaitsAtTheTopic(t *testing.T) {
	broker, subscription := subscriptions(t)
	all := subscription("all")
	sender := queue{t, all.client, topic}.sender()
	kept, later := message("kept"), time.Now().Add(time.Hour)
	_, err := sender.ScheduleMessages(within(t, patience), []*azservicebus.Message{kept}, later, nil)
	must(t, err)
	numbers, err := sender.ScheduleMessages(within(t, patience), messages(1), later, nil)
	must(t, err)
	must(t, sender.CancelScheduledMessages(within(t, patience), numbers, nil))
	equal(t, "count", len(all.peek()), 0)
	broker.advance("PT61M")
	equal(t, "due", all.peek(), []string{*kept.MessageID})
}
