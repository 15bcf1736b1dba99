package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
)

func TestAFullQueueRejectsWithItsName(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{
		MaxLength: 1, OverflowStrategy: &rmq.RejectPublishOverflowStrategy{},
	})
	outcomes := publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("one"), text("two"))
	accepted(t, outcomes[:1])
	rejected, is := outcomes[1].(*rmq.StateRejected)
	if !is || rejected.Error == nil || rejected.Error.Info["queue"] != queue {
		t.Fatalf("outcome of a full queue: %+v", outcomes[1])
	}
}

func TestAMessageNamesItsAddress(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	there, err := rmq.NewMessageWithAddress([]byte("there"), &rmq.QueueAddress{Queue: queue})
	must(t, err)
	nowhere, err := rmq.NewMessageWithAddress([]byte("nowhere"), &rmq.QueueAddress{Queue: fresh(t)})
	must(t, err)
	outcomes := publish(t, connection, nil, there, nowhere)
	accepted(t, outcomes[:1])
	if _, is := outcomes[1].(*rmq.StateReleased); !is {
		t.Fatalf("outcome of a queue that is not there: %T", outcomes[1])
	}
}

func TestARequeuedMessageComesAgainWithItsAnnotations(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("again"))
	consumer := consume(t, connection, queue)
	must(t, receive(t, consumer).Requeue(within(t)))
	must(t, receive(t, consumer).RequeueWithAnnotations(within(t), amqp.Annotations{"x-opt-attempt": "second"}))
	last := receive(t, consumer)
	if last.Message().Annotations["x-opt-attempt"] != "second" || last.Message().Header.DeliveryCount != 0 {
		t.Fatalf("message %+v", last.Message())
	}
	must(t, last.Accept(within(t)))
}

func TestADiscardedMessageGoesToTheDeadLetterExchange(t *testing.T) {
	connection := connect(t)
	dead := declare(t, connection, &rmq.QuorumQueueSpecification{Name: fresh(t) + "-dead"})
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{
		Arguments: map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead},
	})
	publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("bad"), text("worse"))
	consumer := consume(t, connection, queue)
	must(t, receive(t, consumer).Discard(within(t), &amqp.Error{Condition: "app:bad", Description: "it is bad"}))
	must(t, receive(t, consumer).DiscardWithAnnotations(within(t), amqp.Annotations{"x-opt-reason": "worse"}))
	dying := consume(t, connection, dead)
	reasons := map[any]bool{}
	for range 2 {
		delivery := receive(t, dying)
		annotations := delivery.Message().Annotations
		if annotations["x-first-death-queue"] != queue || annotations["x-first-death-reason"] != "rejected" {
			t.Fatalf("annotations %v", annotations)
		}
		reasons[annotations["x-opt-reason"]] = true
		must(t, delivery.Accept(within(t)))
	}
	if !reasons["worse"] {
		t.Fatalf("annotations of the discard: %v", reasons)
	}
}

func TestOnlyTheActiveOfSeveralConsumersIsServed(t *testing.T) {
	first, second := connect(t), connect(t)
	queue := declare(t, first, &rmq.QuorumQueueSpecification{SingleActiveConsumer: true})
	active := consume(t, first, queue)
	waiting := consume(t, second, queue)
	publish(t, first, &rmq.QueueAddress{Queue: queue}, text("one"), text("two"))
	must(t, receive(t, active).Accept(within(t)))
	must(t, receive(t, active).Accept(within(t)))
	moment, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := waiting.Receive(moment); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a waiting consumer received: %v", err)
	}
	must(t, active.Close(within(t)))
	publish(t, first, &rmq.QueueAddress{Queue: queue}, text("three"))
	must(t, receive(t, waiting).Accept(within(t)))
}

func TestAPreSettledConsumerTakesWhatItIsGiven(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("once"))
	options := &rmq.ConsumerOptions{SettleStrategy: rmq.PreSettled}
	consumer, err := connection.NewConsumer(within(t), queue, options)
	must(t, err)
	if body := string(receive(t, consumer).Message().GetData()); body != "once" {
		t.Fatalf("body %q", body)
	}
	must(t, consumer.Close(within(t)))
	eventually(t, "the queue is empty", func() bool { return ready(t, connection, queue) == 0 })
}
