package interop

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/Azure/go-amqp"
)

// session opens a connection of plain AMQP 1.0, as programs for any broker do.
func session(t *testing.T) *amqp.Session {
	t.Helper()
	address := net.JoinHostPort(os.Getenv("RAILBUS_HOST"), os.Getenv("RAILBUS_PORT"))
	sasl := amqp.SASLTypePlain("RootManageSharedAccessKey", "SAS_KEY_VALUE")
	connection, err := amqp.Dial(within(t, patience), "amqp://"+address, &amqp.ConnOptions{SASLType: sasl})
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	opened, err := connection.NewSession(within(t, patience), nil)
	must(t, err)
	return opened
}

func sendMessage(t *testing.T, from *amqp.Session, address string, message *amqp.Message) {
	t.Helper()
	sender, err := from.NewSender(within(t, patience), address, nil)
	must(t, err)
	must(t, sender.Send(within(t, patience), message, nil))
	must(t, sender.Close(within(t, patience)))
}

func takeOne(t *testing.T, receiver *amqp.Receiver) *amqp.Message {
	t.Helper()
	message, err := receiver.Receive(within(t, patience), nil)
	must(t, err)
	must(t, receiver.AcceptMessage(within(t, patience), message))
	return message
}

func TestAReplyComesToTheDynamicNodeOfTheRequester(t *testing.T) {
	requests := cleared(t, "plain")
	client, service := session(t), session(t)
	replies, err := client.NewReceiver(within(t, patience), "", &amqp.ReceiverOptions{DynamicAddress: true})
	must(t, err)
	address := replies.Address()
	if address == "" {
		t.Fatal("the dynamic node has no name")
	}
	request := amqp.NewMessage([]byte("question"))
	request.Properties = &amqp.MessageProperties{MessageID: "one", ReplyTo: &address}
	sendMessage(t, client, requests.name, request)

	worker, err := service.NewReceiver(within(t, patience), requests.name, nil)
	must(t, err)
	asked := takeOne(t, worker)
	reply := amqp.NewMessage([]byte("answer"))
	reply.Properties = &amqp.MessageProperties{CorrelationID: asked.Properties.MessageID}
	sendMessage(t, service, *asked.Properties.ReplyTo, reply)

	got := takeOne(t, replies)
	equal(t, "body", string(got.GetData()), "answer")
	equal(t, "correlation id", got.Properties.CorrelationID, any("one"))
	// The node goes with the link that made it.
	must(t, replies.Close(context.Background()))
	_, err = service.NewSender(within(t, patience), address, nil)
	if err == nil {
		t.Fatal("the node has outlived its link")
	}
}
