package interop

import (
	"errors"
	"testing"

	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
)

func TestAQueueIsDeclaredShownPurgedAndDeleted(t *testing.T) {
	connection := connect(t)
	management := connection.Management()
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{MessageTTL: 600_000})
	accepted(t, publish(t, connection, &rmq.QueueAddress{Queue: queue}, text("one"), text("two"), text("three")))
	info, err := management.QueueInfo(within(t), queue)
	must(t, err)
	if info.Name() != queue || info.Type() != rmq.Quorum || info.MessageCount() != 3 || !info.IsDurable() {
		t.Fatalf("queue %+v", info)
	}
	purged, err := management.PurgeQueue(within(t), queue)
	must(t, err)
	if purged != 3 {
		t.Fatalf("%d messages purged", purged)
	}
	must(t, management.DeleteQueue(within(t), queue))
	if _, err := management.QueueInfo(within(t), queue); !errors.Is(err, rmq.ErrDoesNotExist) {
		t.Fatalf("error of a queue that is gone: %v", err)
	}
}

func TestAQueueThatDiffersIsAConflict(t *testing.T) {
	connection := connect(t)
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	_, err := connection.Management().DeclareQueue(within(t), &rmq.ClassicQueueSpecification{Name: queue})
	if !errors.Is(err, rmq.ErrPreconditionFailed) {
		t.Fatalf("error of another declaration: %v", err)
	}
}

func TestABindingRoutesUntilItIsRemoved(t *testing.T) {
	connection := connect(t)
	management := connection.Management()
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	exchange := fresh(t)
	_, err := management.DeclareExchange(within(t), &rmq.TopicExchangeSpecification{Name: exchange})
	must(t, err)
	binding, err := management.Bind(within(t), &rmq.ExchangeToQueueBindingSpecification{
		SourceExchange: exchange, DestinationQueue: queue, BindingKey: "orders.*",
	})
	must(t, err)
	to := &rmq.ExchangeAddress{Exchange: exchange, Key: "orders.new"}
	accepted(t, publish(t, connection, to, text("routed")))
	must(t, management.Unbind(within(t), binding))
	outcome := publish(t, connection, to, text("lost"))[0]
	if _, is := outcome.(*rmq.StateReleased); !is {
		t.Fatalf("outcome without a binding: %T", outcome)
	}
	delivery := receive(t, consume(t, connection, queue))
	annotations := delivery.Message().Annotations
	if annotations["x-exchange"] != exchange || annotations["x-routing-key"] != "orders.new" {
		t.Fatalf("annotations %v", annotations)
	}
	must(t, delivery.Accept(within(t)))
	must(t, management.DeleteExchange(within(t), exchange))
}

// The client asks for the removal of a binding without its arguments, so that one with arguments stays.
func TestABindingWithArgumentsRoutesByThem(t *testing.T) {
	connection := connect(t)
	management := connection.Management()
	queue := declare(t, connection, &rmq.QuorumQueueSpecification{})
	exchange := fresh(t)
	_, err := management.DeclareExchange(within(t), &rmq.HeadersExchangeSpecification{Name: exchange})
	must(t, err)
	_, err = management.Bind(within(t), &rmq.ExchangeToQueueBindingSpecification{
		SourceExchange: exchange, DestinationQueue: queue,
		Arguments: map[string]any{"x-match": "all", "colour": "red", "size": int64(3)},
	})
	must(t, err)
	red, blue := text("red"), text("blue")
	red.ApplicationProperties = map[string]any{"colour": "red", "size": int64(3)}
	blue.ApplicationProperties = map[string]any{"colour": "blue", "size": int64(3)}
	outcomes := publish(t, connection, &rmq.ExchangeAddress{Exchange: exchange}, red, blue)
	accepted(t, outcomes[:1])
	if _, is := outcomes[1].(*rmq.StateReleased); !is {
		t.Fatalf("outcome of what no binding matches: %T", outcomes[1])
	}
	must(t, management.DeleteExchange(within(t), exchange))
}
