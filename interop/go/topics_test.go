package interop

// Topics: subscriptions get copies of what they select, with dead letters and sessions of their own.

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const topic = "events"

func publish(t *testing.T, client *azservicebus.Client, sent ...*azservicebus.Message) {
	t.Helper()
	queue{t, client, topic}.send(sent...)
}

func order(body, colour string, amount int64) *azservicebus.Message {
	made := message(body)
	made.Subject = pointer("order")
	made.ApplicationProperties = map[string]any{"colour": colour, "amount": amount}
	return made
}

func takeFrom(t *testing.T, client *azservicebus.Client, subscription string, count int, options *azservicebus.ReceiverOptions) []string {
	t.Helper()
	receiver, err := client.NewReceiverForSubscription(topic, subscription, options)
	must(t, err)
	return bodiesOf(receive(t, receiver, count))
}

func TestEverySubscriptionThatSelectsAMessageGetsItsCopy(t *testing.T) {
	client := connect(t, startVirtual(t, "topics.json").connectionString)
	publish(t, client, order("small", "red", 5), order("big", "blue", 500))
	equal(t, "all", takeFrom(t, client, "all", 2, receiveAndDelete), []string{"small", "big"})
	equal(t, "red", takeFrom(t, client, "red", 1, receiveAndDelete), []string{"small"})
	equal(t, "big", takeFrom(t, client, "big", 1, receiveAndDelete), []string{"big"})
}

func TestDeadLettersAreThoseOfOneSubscription(t *testing.T) {
	client := connect(t, startVirtual(t, "topics.json").connectionString)
	publish(t, client, order("poison", "red", 5))
	receiver, err := client.NewReceiverForSubscription(topic, "red", nil)
	must(t, err)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveOne(t, receiver), nil))
	equal(t, "dead", takeFrom(t, client, "red", 1, deleteDead), []string{"poison"})
	equal(t, "all", takeFrom(t, client, "all", 1, receiveAndDelete), []string{"poison"})
}

func TestSessionsOfASubscriptionAreReceivedInOrder(t *testing.T) {
	client := connect(t, startVirtual(t, "topics.json").connectionString)
	for _, body := range []string{"0", "1", "2"} {
		one := message(body)
		one.SessionID = pointer("s")
		publish(t, client, one)
	}
	receiver, err := client.AcceptSessionForSubscription(within(t, patience), topic, "sessions", "s", nil)
	must(t, err)
	equal(t, "bodies", bodiesOf(receiveIn(t, receiver, 3)), []string{"0", "1", "2"})
}
