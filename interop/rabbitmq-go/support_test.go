package interop

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
)

// A broker has this long for what takes it a moment.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T) *rmq.AmqpConnection {
	t.Helper()
	uri := fmt.Sprintf("amqp://guest:guest@%s:%s/", os.Getenv("RAILBUS_HOST"), os.Getenv("RAILBUS_PORT"))
	connection, err := rmq.NewEnvironment(uri, nil).NewConnection(within(t))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// A name that no other test has.
func fresh(t *testing.T) string {
	return fmt.Sprintf("rabbitmq-go-%s-%d", t.Name(), time.Now().UnixNano())
}

// declare makes a queue that goes with its test.
func declare(t *testing.T, connection *rmq.AmqpConnection, queue *rmq.QuorumQueueSpecification) string {
	t.Helper()
	if queue.Name == "" {
		queue.Name = fresh(t)
	}
	_, err := connection.Management().DeclareQueue(within(t), queue)
	must(t, err)
	t.Cleanup(func() { _ = connection.Management().DeleteQueue(context.Background(), queue.Name) })
	return queue.Name
}

func publish(t *testing.T, connection *rmq.AmqpConnection, to rmq.ITargetAddress, messages ...*amqp.Message) []rmq.DeliveryState {
	t.Helper()
	publisher, err := connection.NewPublisher(within(t), to, nil)
	must(t, err)
	var outcomes []rmq.DeliveryState
	for _, message := range messages {
		result, err := publisher.Publish(within(t), message)
		must(t, err)
		outcomes = append(outcomes, result.Outcome)
	}
	must(t, publisher.Close(within(t)))
	return outcomes
}

func accepted(t *testing.T, outcomes []rmq.DeliveryState) {
	t.Helper()
	for _, outcome := range outcomes {
		if _, is := outcome.(*rmq.StateAccepted); !is {
			t.Fatalf("not accepted: %T", outcome)
		}
	}
}

func text(body string) *amqp.Message {
	return rmq.NewMessage([]byte(body))
}

func consume(t *testing.T, connection *rmq.AmqpConnection, queue string) *rmq.Consumer {
	t.Helper()
	consumer, err := connection.NewConsumer(within(t), queue, nil)
	must(t, err)
	t.Cleanup(func() { _ = consumer.Close(context.Background()) })
	return consumer
}

func receive(t *testing.T, consumer *rmq.Consumer) rmq.IDeliveryContext {
	t.Helper()
	delivery, err := consumer.Receive(within(t))
	must(t, err)
	return delivery
}

// eventually waits for what a settlement, which is not answered, brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("it did not come to be that %s", what)
}

func ready(t *testing.T, connection *rmq.AmqpConnection, queue string) uint64 {
	t.Helper()
	info, err := connection.Management().QueueInfo(within(t), queue)
	must(t, err)
	return info.MessageCount()
}
