package interop

import (
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
)

func azure(t *testing.T) *azservicebus.Client {
	client, err := azservicebus.NewClientFromConnectionString(os.Getenv("RAILBUS_CONNECTION_STRING"), nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(within(t)) })
	return client
}

func TestWhatAzuresSDKSendsARabbitMQClientConsumes(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	sender, err := azure(t).NewSender(queue, nil)
	must(t, err)
	subject := "subject"
	must(t, sender.SendMessage(within(t), &azservicebus.Message{Body: []byte("from azure"), Subject: &subject}, nil))
	delivery := receive(t, consume(t, connection, queue))
	if string(delivery.Message().GetData()) != "from azure" || *delivery.Message().Properties.Subject != subject {
		t.Fatalf("message %+v", delivery.Message())
	}
	must(t, delivery.Accept(within(t)))
}

func TestWhatARabbitMQClientPublishesAzuresSDKReceives(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	accepted(t, publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("from rabbitmq")))
	receiver, err := azure(t).NewReceiverForQueue(queue, nil)
	must(t, err)
	messages, err := receiver.ReceiveMessages(within(t), 1, nil)
	must(t, err)
	if string(messages[0].Body) != "from rabbitmq" {
		t.Fatalf("body %q", messages[0].Body)
	}
	must(t, receiver.CompleteMessage(within(t), messages[0], nil))
}
