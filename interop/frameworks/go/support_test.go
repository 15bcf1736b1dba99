// Package frameworks runs frameworks of Go against Railbus.
//
// This file holds what every test needs: names of its own and the SDK's administration client, to make entities
// and to look at them. Waits are on what can be observed and fail the test after `patience`.
package frameworks

import (
	"context"
	"crypto/rand"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

const patience = 60 * time.Second

func connectionString() string {
	return os.Getenv("RAILBUS_CONNECTION_STRING")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %#v, want %#v", what, got, want)
	}
}

// fresh is a name that no other test or run has used.
func fresh(what string) string {
	return what + "-" + strings.ToLower(rand.Text()[:12])
}

func administer(t *testing.T) *admin.Client {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(connectionString(), nil)
	must(t, err)
	return client
}

// queueOf makes a queue that gives a message three times and is removed at the end.
func queueOf(t *testing.T) string {
	t.Helper()
	name, deliveries := fresh("queue"), int32(3)
	properties := &admin.QueueProperties{MaxDeliveryCount: &deliveries}
	_, err := administer(t).CreateQueue(t.Context(), name, &admin.CreateQueueOptions{Properties: properties})
	must(t, err)
	removeQueue(t, name)
	return name
}

func removeQueue(t *testing.T, name string) {
	client := administer(t)
	t.Cleanup(func() {
		_, err := client.DeleteQueue(context.Background(), name, nil)
		must(t, err)
	})
}

// topicOf makes a topic with the subscription `all`, and removes it at the end.
func topicOf(t *testing.T) string {
	t.Helper()
	name, client := fresh("topic"), administer(t)
	_, err := client.CreateTopic(t.Context(), name, nil)
	must(t, err)
	removeTopic(t, name)
	_, err = client.CreateSubscription(t.Context(), name, "all", nil)
	must(t, err)
	return name
}

func removeTopic(t *testing.T, name string) {
	client := administer(t)
	t.Cleanup(func() {
		_, err := client.DeleteTopic(context.Background(), name, nil)
		must(t, err)
	})
}

// counts are the active messages and the dead letters of a queue.
func counts(t *testing.T, queue string) [2]int32 {
	t.Helper()
	found, err := administer(t).GetQueueRuntimeProperties(t.Context(), queue, nil)
	must(t, err)
	return [2]int32{found.ActiveMessageCount, found.DeadLetterMessageCount}
}

// subscriptionCounts are the active messages and the dead letters of a subscription.
func subscriptionCounts(t *testing.T, topic, subscription string) [2]int32 {
	t.Helper()
	found, err := administer(t).GetSubscriptionRuntimeProperties(t.Context(), topic, subscription, nil)
	must(t, err)
	return [2]int32{found.ActiveMessageCount, found.DeadLetterMessageCount}
}

// eventually asks until `condition` holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %s", what, patience)
		}
	}
}

// take gives what comes next.
func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case one := <-from:
		return one
	case <-time.After(patience):
		t.Fatalf("nothing came within %s", patience)
		panic("not reached")
	}
}
