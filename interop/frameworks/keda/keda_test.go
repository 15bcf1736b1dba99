// Package keda scales by queues and subscriptions of Railbus with KEDA's scaler.
//
// The tests do what KEDA's operator does: they make the scaler from a trigger's metadata and the environment of
// the workload, and ask it what to tell Kubernetes.
package keda

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
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

// queueOf makes a queue and removes it at the end.
func queueOf(t *testing.T, name string) string {
	t.Helper()
	client := administer(t)
	_, err := client.CreateQueue(t.Context(), name, nil)
	must(t, err)
	t.Cleanup(func() {
		_, err := client.DeleteQueue(context.Background(), name, nil)
		must(t, err)
	})
	return name
}

// topicOf makes a topic with the subscription `all`, and removes it at the end.
func topicOf(t *testing.T) string {
	t.Helper()
	name, client := fresh("topic"), administer(t)
	_, err := client.CreateTopic(t.Context(), name, nil)
	must(t, err)
	t.Cleanup(func() {
		_, err := client.DeleteTopic(context.Background(), name, nil)
		must(t, err)
	})
	_, err = client.CreateSubscription(t.Context(), name, "all", nil)
	must(t, err)
	return name
}

// send sends `count` messages to a queue or topic.
func send(t *testing.T, to string, count int) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connectionString(), nil)
	must(t, err)
	defer client.Close(context.Background())
	sender, err := client.NewSender(to, nil)
	must(t, err)
	for range count {
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("work")}, nil))
	}
}

// configured is the scaler of a trigger whose connection stands in the variable BUS of its workload.
func configured(connection string, metadata map[string]string) (scalers.Scaler, error) {
	metadata["connectionFromEnv"] = "BUS"
	return scalers.NewAzureServiceBusScaler(&scalersconfig.ScalerConfig{
		ScalableObjectName:      "worker",
		ScalableObjectNamespace: "default",
		ScalableObjectType:      "ScaledObject",
		GlobalHTTPTimeout:       patience,
		TriggerType:             "azure-servicebus",
		TriggerMetadata:         metadata,
		ResolvedEnv:             map[string]string{"BUS": connection},
	})
}

func scalerOf(t *testing.T, metadata map[string]string) scalers.Scaler {
	t.Helper()
	scaler, err := configured(connectionString(), metadata)
	must(t, err)
	t.Cleanup(func() { must(t, scaler.Close(context.Background())) })
	return scaler
}

// expect asks the scaler for its metric and for whether the workload has to run.
func expect(t *testing.T, scaler scalers.Scaler, messages int64, active bool) {
	t.Helper()
	metrics, isActive, err := scaler.GetMetricsAndActivity(t.Context(), "s0-metric")
	must(t, err)
	if len(metrics) != 1 || metrics[0].MetricName != "s0-metric" {
		t.Fatalf("not the one metric that was asked for: %v", metrics)
	}
	if got := metrics[0].Value.Value(); got != messages || isActive != active {
		t.Fatalf("got %d messages, active %t; want %d, %t", got, isActive, messages, active)
	}
}

func TestAQueueIsScaledByItsActiveMessages(t *testing.T) {
	queue := queueOf(t, fresh("queue"))
	scaler := scalerOf(t, map[string]string{"queueName": queue, "messageCount": "10", "activationMessageCount": "2"})
	expect(t, scaler, 0, false)
	send(t, queue, 2)
	expect(t, scaler, 2, false)
	send(t, queue, 23)
	expect(t, scaler, 25, true)
}

func TestASubscriptionIsScaledByItsActiveMessages(t *testing.T) {
	topic := topicOf(t)
	scaler := scalerOf(t, map[string]string{"topicName": topic, "subscriptionName": "all"})
	expect(t, scaler, 0, false)
	send(t, topic, 1)
	expect(t, scaler, 1, true)
	send(t, topic, 24)
	expect(t, scaler, 25, true)
}

func TestQueuesAreScaledByAPatternOfTheirNames(t *testing.T) {
	prefix := fresh("queue")
	one, other := queueOf(t, prefix+"-1"), queueOf(t, prefix+"-2")
	send(t, one, 3)
	send(t, other, 5)
	for operation, want := range map[string]int64{"sum": 8, "max": 5, "avg": 4} {
		scaler := scalerOf(t, map[string]string{
			"queueName": "^" + prefix + "-.$", "useRegex": "true", "operation": operation,
		})
		expect(t, scaler, want, true)
	}
}

func TestTheMetricNamesItsQueueAndTarget(t *testing.T) {
	scaler := scalerOf(t, map[string]string{"queueName": "orders", "messageCount": "10"})
	specs := scaler.GetMetricSpecForScaling(t.Context())
	if len(specs) != 1 {
		t.Fatalf("not one metric: %v", specs)
	}
	external := specs[0].External
	if external.Metric.Name != "s0-azure-servicebus-orders" || external.Target.AverageValue.Value() != 10 {
		t.Fatalf("another metric: %v", external)
	}
}

func TestAMissingQueueAndAWrongKeyAreErrors(t *testing.T) {
	scaler := scalerOf(t, map[string]string{"queueName": fresh("missing")})
	if _, active, err := scaler.GetMetricsAndActivity(t.Context(), "s0-metric"); err == nil || active ||
		!strings.Contains(err.Error(), "doesn't exist") {
		t.Fatalf("a missing queue: active %t, %v", active, err)
	}

	wrong := strings.Replace(connectionString(), "SharedAccessKey=", "SharedAccessKey=x", 1)
	scaler, err := configured(wrong, map[string]string{"queueName": queueOf(t, fresh("queue"))})
	must(t, err)
	if _, active, err := scaler.GetMetricsAndActivity(t.Context(), "s0-metric"); err == nil || active ||
		!strings.Contains(err.Error(), "401") {
		t.Fatalf("a wrong key: active %t, %v", active, err)
	}
}
