package railbus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func startWithOrders(t *testing.T) *Broker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "entities.json")
	if err := os.WriteFile(file, []byte(`{"queues": [{"name": "orders"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return Start(t, Entities(file))
}

func fails(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("the error is %v, without %q", err, text)
	}
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestANamespaceHasTheEntitiesOfTheBroker(t *testing.T) {
	namespace := startWithOrders(t).Namespace(t)
	if !strings.Contains(namespace.ConnectionString, "SharedAccessKeyName="+namespace.Name+";") {
		t.Fatal(namespace.ConnectionString)
	}
	reasons, err := namespace.Explain("orders")
	succeeds(t, err)
	if len(reasons) != 1 || reasons[0].Code != "empty" {
		t.Fatalf("the reasons are %v", reasons)
	}
}

func TestANamespaceEndsWithItsTest(t *testing.T) {
	broker := startWithOrders(t)
	var namespace *Namespace
	t.Run("inner", func(t *testing.T) { namespace = broker.Namespace(t) })
	fails(t, namespace.Reset(), namespace.Name)
}

func TestANamespaceLikeNoOtherIsEmpty(t *testing.T) {
	broker := startWithOrders(t)
	namespace, err := CreateNamespace(broker.Address, "", "")
	succeeds(t, err)
	_, err = namespace.Explain("orders")
	fails(t, err, "the entity does not exist")
}

func TestFaultRulesAreThoseOfTheNamespace(t *testing.T) {
	broker := startWithOrders(t)
	namespace, other := broker.Namespace(t), broker.Namespace(t)
	names := func(namespace *Namespace) (names []string) {
		rules, err := namespace.Faults()
		succeeds(t, err)
		for _, rule := range rules {
			names = append(names, rule.Name)
		}
		return names
	}
	match := map[string]any{"entity": "orders", "message-id": "7", "times": 1}
	succeeds(t, namespace.Fault(FaultRule{Name: "busy", Match: match, Effect: map[string]any{"refuse": "server-busy"}}))
	succeeds(t, namespace.Fault(FaultRule{Name: "repeated", Effect: "deliver-again"}))
	if !slices.Equal(names(namespace), []string{"busy", "repeated"}) || names(other) != nil {
		t.Fatalf("the rules are %v and %v", names(namespace), names(other))
	}
	succeeds(t, namespace.ClearFaults())
	if names(namespace) != nil {
		t.Fatalf("the rules are %v", names(namespace))
	}
	succeeds(t, namespace.Fault(FaultRule{Name: "again", Effect: "deliver-again"}))
	succeeds(t, namespace.Reset())
	if names(namespace) != nil {
		t.Fatalf("the rules are %v", names(namespace))
	}
}

func TestWhatIsRefusedIsAnError(t *testing.T) {
	broker := startWithOrders(t)
	namespace := broker.Namespace(t)
	_, err := CreateNamespace(broker.Address, "a/b", "default")
	fails(t, err, "a/b")
	_, err = CreateNamespace(broker.Address, namespace.Name, "default")
	fails(t, err, "exists already")
	_, err = CreateNamespace(broker.Address, "", "nowhere")
	fails(t, err, "nowhere")
	fails(t, namespace.Fault(FaultRule{Name: "worst", Effect: "explode"}), "explode")
}

func TestTimePassesInOneNamespaceAlone(t *testing.T) {
	broker := startWithOrders(t)
	namespace, other := broker.Namespace(t), broker.Namespace(t)
	offset := func(namespace *Namespace) string {
		var clock struct {
			Offset string `json:"offset"`
		}
		succeeds(t, namespace.request("GET", "/clock", nil, &clock))
		return clock.Offset
	}
	succeeds(t, namespace.Advance(24*time.Hour))
	if offset(namespace) != "PT24H" || offset(other) != "PT0S" {
		t.Fatalf("the clocks are %s and %s ahead", offset(namespace), offset(other))
	}
}

func TestANamespaceGoesBackToWhatWasKept(t *testing.T) {
	namespace := startWithOrders(t).Namespace(t)
	succeeds(t, namespace.Snapshot("full"))
	succeeds(t, namespace.Reset())
	succeeds(t, namespace.Restore("full"))
	fails(t, namespace.Snapshot("full"), "already")
	fails(t, namespace.Restore("gone"), "no snapshot 'gone'")
}
