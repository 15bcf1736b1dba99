package interop

import (
	"context"
	"testing"

	"github.com/Azure/go-amqp"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
)

func TestARequesterGetsItsReplyDirectly(t *testing.T) {
	requesting, responding := connect(t), connect(t)
	queue := declare(t, responding, &rmq.QuorumQueueSpecification{})
	responder, err := responding.NewResponder(within(t), rmq.ResponderOptions{
		RequestQueue: queue,
		Handler: func(_ context.Context, request *amqp.Message) (*amqp.Message, error) {
			return text("reply to " + string(request.GetData())), nil
		},
	})
	must(t, err)
	t.Cleanup(func() { _ = responder.Close(context.Background()) })
	requester, err := requesting.NewRequester(within(t), &rmq.RequesterOptions{
		RequestQueueName: queue, SettleStrategy: rmq.DirectReplyTo,
	})
	must(t, err)
	t.Cleanup(func() { _ = requester.Close(context.Background()) })
	for _, body := range []string{"one", "two"} {
		reply, err := requester.Publish(within(t), requester.Message([]byte(body)))
		must(t, err)
		select {
		case message := <-reply:
			if message == nil || string(message.GetData()) != "reply to "+body {
				t.Fatalf("reply %+v", message)
			}
		case <-within(t).Done():
			t.Fatal("no reply came")
		}
	}
}
