package frameworks

import (
	"context"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/azuresb"
)

// open gives a topic and the subscription `all` by their URLs, as a portable program opens them.
func open(t *testing.T) (string, *pubsub.Topic, *pubsub.Subscription) {
	t.Helper()
	name := topicOf(t)
	topic, err := pubsub.OpenTopic(t.Context(), "azuresb://"+name)
	must(t, err)
	t.Cleanup(func() { must(t, topic.Shutdown(context.Background())) })
	subscription, err := pubsub.OpenSubscription(t.Context(), "azuresb://"+name+"?subscription=all")
	must(t, err)
	t.Cleanup(func() { must(t, subscription.Shutdown(context.Background())) })
	return name, topic, subscription
}

func receive(t *testing.T, from *pubsub.Subscription) *pubsub.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	message, err := from.Receive(ctx)
	must(t, err)
	return message
}

func TestGoCloudSendsReceivesAndAcknowledges(t *testing.T) {
	name, topic, subscription := open(t)
	must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte("event"), Metadata: map[string]string{"colour": "red"}}))
	got := receive(t, subscription)
	equal(t, "body", string(got.Body), "event")
	equal(t, "metadata", got.Metadata, map[string]string{"colour": "red"})
	got.Ack()
	eventually(t, "completion", func() bool { return subscriptionCounts(t, name, "all") == [2]int32{0, 0} })
}

func TestGoCloudReceivesAgainWhatWasNotAcknowledged(t *testing.T) {
	name, topic, subscription := open(t)
	must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte("again")}))
	got := receive(t, subscription)
	equal(t, "can be given back", got.Nackable(), true)
	got.Nack()
	got = receive(t, subscription)
	equal(t, "body", string(got.Body), "again")
	got.Ack()
	eventually(t, "completion", func() bool { return subscriptionCounts(t, name, "all") == [2]int32{0, 0} })
}

func TestGoCloudSendsAndReceivesManyAtOnce(t *testing.T) {
	_, topic, subscription := open(t)
	const many = 50
	sent := make(chan error, many)
	for number := range many {
		go func() { sent <- topic.Send(context.Background(), &pubsub.Message{Body: []byte{byte(number)}}) }()
	}
	got := []int{}
	for range many {
		must(t, take(t, sent))
		message := receive(t, subscription)
		got = append(got, int(message.Body[0]))
		message.Ack()
	}
	slices.Sort(got)
	for number := range many {
		equal(t, "number", got[number], number)
	}
}

func TestGoCloudUsesAQueueByItsSenderAndReceiver(t *testing.T) {
	queue := queueOf(t)
	client, err := azuresb.NewClientFromConnectionString(connectionString(), nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	sender, err := azuresb.NewSender(client, queue, nil)
	must(t, err)
	topic, err := azuresb.OpenTopic(t.Context(), sender, nil)
	must(t, err)
	t.Cleanup(func() { must(t, topic.Shutdown(context.Background())) })
	receiver, err := client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{})
	must(t, err)
	subscription, err := azuresb.OpenSubscription(t.Context(), client, receiver, nil)
	must(t, err)
	t.Cleanup(func() { must(t, subscription.Shutdown(context.Background())) })
	must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte("work")}))
	got := receive(t, subscription)
	equal(t, "body", string(got.Body), "work")
	got.Ack()
	eventually(t, "completion", func() bool { return counts(t, queue) == [2]int32{0, 0} })
}

func TestGoCloudSaysThatATopicIsMissing(t *testing.T) {
	topic, err := pubsub.OpenTopic(t.Context(), "azuresb://no-such-topic")
	must(t, err)
	t.Cleanup(func() { _ = topic.Shutdown(context.Background()) })
	err = topic.Send(t.Context(), &pubsub.Message{Body: []byte("x")})
	equal(t, "code", gcerrors.Code(err), gcerrors.NotFound)
}
