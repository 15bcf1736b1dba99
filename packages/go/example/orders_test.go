// Package shop has tests of a program that uses Azure Service Bus, without it.
package shop

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"railbus.test/railbus"
)

func start(t *testing.T) (*railbus.Broker, *azservicebus.Client) {
	broker := railbus.Start(t, railbus.Entities("Config.json"))
	client, err := azservicebus.NewClientFromConnectionString(broker.ConnectionString, nil)
	check(t, err)
	t.Cleanup(func() { check(t, client.Close(context.Background())) })
	return broker, client
}

func TestAnOrderArrives(t *testing.T) {
	_, client := start(t)
	send(t, client, "one espresso")
	receive(t, client, nil, "one espresso")
}

func TestAnOrderThatStaysForADayIsADeadLetter(t *testing.T) {
	broker, client := start(t)
	send(t, client, "one espresso")
	check(t, broker.Advance(24*time.Hour))
	dead := &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
	receive(t, client, dead, "one espresso")
	left, err := receiver(t, client, nil).PeekMessages(context.Background(), 1, nil)
	check(t, err)
	if len(left) != 0 {
		t.Fatalf("%d orders are left", len(left))
	}
}

func send(t *testing.T, client *azservicebus.Client, body string) {
	sender, err := client.NewSender("orders", nil)
	check(t, err)
	check(t, sender.SendMessage(context.Background(), &azservicebus.Message{Body: []byte(body)}, nil))
}

// receive completes the messages that are there, which must be the expected ones.
func receive(t *testing.T, client *azservicebus.Client, options *azservicebus.ReceiverOptions, expected ...string) {
	receiver := receiver(t, client, options)
	messages, err := receiver.ReceiveMessages(context.Background(), 10, nil)
	check(t, err)
	var bodies []string
	for _, message := range messages {
		bodies = append(bodies, string(message.Body))
		check(t, receiver.CompleteMessage(context.Background(), message, nil))
	}
	if !slices.Equal(bodies, expected) {
		t.Fatalf("received %v, not %v", bodies, expected)
	}
}

func receiver(t *testing.T, client *azservicebus.Client, options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	receiver, err := client.NewReceiverForQueue("orders", options)
	check(t, err)
	t.Cleanup(func() { check(t, receiver.Close(context.Background())) })
	return receiver
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
