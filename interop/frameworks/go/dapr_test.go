package frameworks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dapr/components-contrib/bindings"
	"github.com/dapr/components-contrib/bindings/azure/servicebusqueues"
	"github.com/dapr/components-contrib/metadata"
	"github.com/dapr/components-contrib/pubsub"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/queues"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/topics"
	"github.com/dapr/kit/logger"
)

// component starts a pub-sub component of Dapr, configured as its YAML would be.
func component(t *testing.T, make func(logger.Logger) pubsub.PubSub, more map[string]string) pubsub.PubSub {
	t.Helper()
	started := make(logger.NewLogger("dapr"))
	must(t, started.Init(t.Context(), pubsub.Metadata{Base: base(more)}))
	t.Cleanup(func() { must(t, started.Close()) })
	return started
}

func base(more map[string]string) metadata.Base {
	properties := map[string]string{"connectionString": connectionString(), "maxDeliveryCount": "3"}
	for name, value := range more {
		properties[name] = value
	}
	return metadata.Base{Name: "railbus", Properties: properties}
}

// subscribe collects what a handler is given; it fails as often as `failures` says.
func subscribe(t *testing.T, from pubsub.PubSub, topic string, failures int, metadata map[string]string) <-chan *pubsub.NewMessage {
	t.Helper()
	arrivals := make(chan *pubsub.NewMessage, 100)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	handle := func(_ context.Context, message *pubsub.NewMessage) error {
		arrivals <- message
		if failures > 0 {
			failures--
			return errors.New("not yet")
		}
		return nil
	}
	must(t, from.Subscribe(ctx, pubsub.SubscribeRequest{Topic: topic, Metadata: metadata}, handle))
	return arrivals
}

func publish(t *testing.T, to pubsub.PubSub, topic, data string, metadata map[string]string) {
	t.Helper()
	must(t, to.Publish(t.Context(), &pubsub.PublishRequest{Topic: topic, Data: []byte(data), Metadata: metadata}))
}

func TestDaprMakesTheQueueThatItSubscribesTo(t *testing.T) {
	queue, made := fresh("dapr"), component(t, queues.NewAzureServiceBusQueues, nil)
	removeQueue(t, queue)
	arrivals := subscribe(t, made, queue, 0, nil)
	publish(t, made, queue, "hello", map[string]string{"MessageId": "one", "Label": "greeting", "colour": "red"})
	got := take(t, arrivals)
	equal(t, "data", string(got.Data), "hello")
	equal(t, "message id", got.Metadata["metadata.MessageId"], "one")
	equal(t, "label", got.Metadata["metadata.Label"], "greeting")
	eventually(t, "completion", func() bool { return counts(t, queue) == [2]int32{0, 0} })
}

func TestDaprGivesAMessageAgainAfterItsHandlerFailed(t *testing.T) {
	queue, made := fresh("dapr"), component(t, queues.NewAzureServiceBusQueues, nil)
	removeQueue(t, queue)
	arrivals := subscribe(t, made, queue, 1, nil)
	publish(t, made, queue, "again", nil)
	for delivered := range 2 {
		// This SDK counts the delivery that it has under way.
		equal(t, "delivery count", take(t, arrivals).Metadata["metadata.DeliveryCount"], strconv.Itoa(delivered+1))
	}
	eventually(t, "completion", func() bool { return counts(t, queue) == [2]int32{0, 0} })
}

func TestDaprDeadLettersAMessageWhoseDeliveriesAreUsedUp(t *testing.T) {
	queue, made := fresh("dapr"), component(t, queues.NewAzureServiceBusQueues, nil)
	removeQueue(t, queue)
	arrivals := subscribe(t, made, queue, 3, nil)
	publish(t, made, queue, "poison", nil)
	for range 3 {
		equal(t, "data", string(take(t, arrivals).Data), "poison")
	}
	eventually(t, "a dead letter", func() bool { return counts(t, queue) == [2]int32{0, 1} })
}

func TestDaprPublishesInBulk(t *testing.T) {
	queue, made := fresh("dapr"), component(t, queues.NewAzureServiceBusQueues, nil)
	removeQueue(t, queue)
	arrivals := subscribe(t, made, queue, 0, nil)
	entries := []pubsub.BulkMessageEntry{{EntryId: "1", Event: []byte("a")}, {EntryId: "2", Event: []byte("b")}}
	answer, err := made.(pubsub.BulkPublisher).BulkPublish(t.Context(), &pubsub.BulkPublishRequest{Topic: queue, Entries: entries})
	must(t, err)
	equal(t, "failed entries", len(answer.FailedEntries), 0)
	got := []string{string(take(t, arrivals).Data), string(take(t, arrivals).Data)}
	slices.Sort(got)
	equal(t, "data", got, []string{"a", "b"})
}

func TestDaprMakesATopicAndASubscriptionForEachConsumer(t *testing.T) {
	topic := fresh("dapr")
	removeTopic(t, topic)
	billing := component(t, topics.NewAzureServiceBusTopics, map[string]string{"consumerID": "billing"})
	shipping := component(t, topics.NewAzureServiceBusTopics, map[string]string{"consumerID": "shipping"})
	bills, shipments := subscribe(t, billing, topic, 0, nil), subscribe(t, shipping, topic, 1, nil)
	publish(t, billing, topic, "order", nil)
	equal(t, "data", string(take(t, bills).Data), "order")
	for range 2 {
		equal(t, "data", string(take(t, shipments).Data), "order")
	}
	for _, consumer := range []string{"billing", "shipping"} {
		eventually(t, "completion", func() bool { return subscriptionCounts(t, topic, consumer) == [2]int32{0, 0} })
	}
}

func TestDaprReceivesSessionsInTheirOrder(t *testing.T) {
	topic := fresh("dapr")
	removeTopic(t, topic)
	made := component(t, topics.NewAzureServiceBusTopics, map[string]string{"consumerID": "orders"})
	sessions := map[string]string{"requireSessions": "true", "maxConcurrentSessions": "2", "sessionIdleTimeoutInSec": "1"}
	arrivals := subscribe(t, made, topic, 0, sessions)
	for number := range 3 {
		for _, session := range []string{"red", "blue"} {
			publish(t, made, topic, strconv.Itoa(number), map[string]string{"SessionId": session})
		}
	}
	got := map[string]string{}
	for range 6 {
		message := take(t, arrivals)
		got[message.Metadata["metadata.SessionId"]] += string(message.Data)
	}
	equal(t, "data by session", got, map[string]string{"red": "012", "blue": "012"})
}

func TestDaprsBindingSendsSchedulesAndReads(t *testing.T) {
	queue := fresh("dapr")
	binding := servicebusqueues.NewAzureServiceBusQueues(logger.NewLogger("dapr"))
	must(t, binding.Init(t.Context(), bindings.Metadata{Base: base(map[string]string{"queueName": queue})}))
	removeQueue(t, queue)
	t.Cleanup(func() { must(t, binding.Close()) })
	later := map[string]string{"ScheduledEnqueueTimeUtc": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}
	for data, metadata := range map[string]map[string]string{"now": nil, "later": later} {
		_, err := binding.Invoke(t.Context(), &bindings.InvokeRequest{
			Data: []byte(data), Metadata: metadata, Operation: bindings.CreateOperation,
		})
		must(t, err)
	}
	arrivals := make(chan string, 10)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	must(t, binding.Read(ctx, func(_ context.Context, read *bindings.ReadResponse) ([]byte, error) {
		arrivals <- string(read.Data)
		return nil, nil
	}))
	equal(t, "data", take(t, arrivals), "now")
	eventually(t, "completion", func() bool { return counts(t, queue) == [2]int32{0, 0} })
	found, err := administer(t).GetQueueRuntimeProperties(t.Context(), queue, nil)
	must(t, err)
	equal(t, "scheduled messages", found.ScheduledMessageCount, int32(1))
}
