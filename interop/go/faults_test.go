package interop

// Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says.
//
// Each effect happens once. `tries` is how often the broker has seen the operation, so 2 is one retry;
// `messages` is how many are in the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	faultsDocument = "../../docs/faults.md"
	faultsTitle    = "### Go: azservicebus v1.11.0\n"
	faultsHead     = "| Effect | `send` | tries | messages | `complete` | tries | messages |\n|---|---|---|---|---|---|---|\n"
)

type effect struct {
	shown, json string
	// Whether it is about locks alone, which a send has none of.
	ofLocks bool
}

func effects() []effect {
	var all []effect
	for _, refused := range []string{"server-busy", "timeout", "quota-exceeded", "entity-disabled", "not-found",
		"unauthorized", "internal-error"} {
		all = append(all, effect{"refuse: " + refused, fmt.Sprintf(`{"refuse": %q}`, refused), false})
	}
	return append(all,
		effect{"disconnect: before", `{"disconnect": "before"}`, false},
		effect{"disconnect: after", `{"disconnect": "after"}`, false},
		effect{"delay-ms: 50", `{"delay-ms": 50}`, false},
		effect{"lose-lock", `"lose-lock"`, true},
		effect{"deliver-again", `"deliver-again"`, true})
}

// ask sends a request about the default namespace, and returns how many operations the first rule has matched.
func (b virtualBroker) ask(method, path, body string) int {
	b.t.Helper()
	request, err := http.NewRequest(method, "http://"+b.address+"/$railbus/namespaces/default/"+path,
		bytes.NewReader([]byte(body)))
	must(b.t, err)
	answer, err := http.DefaultClient.Do(request)
	must(b.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(b.t, err)
	equal(b.t, string(text), answer.StatusCode, http.StatusOK)
	var found struct{ Faults []struct{ Matched int } }
	must(b.t, json.Unmarshal(text, &found))
	if len(found.Faults) == 0 {
		return 0
	}
	return found.Faults[0].Matched
}

// result is what a user of the SDK sees of an operation that has the effect once, how often the broker saw
// it, and how many messages there are then.
func (b virtualBroker) result(effect effect, operation string, do func() error) string {
	b.t.Helper()
	rule := `{"faults": [{"name": "once", "match": {"operations": [%q], "times": 1}, "effect": %s}]}`
	b.ask("PUT", "faults", fmt.Sprintf(rule, operation, effect.json))
	shown := "nothing"
	if err := do(); err != nil {
		shown = fmt.Sprintf("`%T`", err)
		if sdkCode := code(err); sdkCode != "" {
			shown = fmt.Sprintf("`%s`", sdkCode)
		}
	}
	tries := b.ask("GET", "faults", "")
	b.ask("DELETE", "faults", "")
	receiver, err := b.client().NewReceiverForQueue("orders", nil)
	must(b.t, err)
	left, err := receiver.PeekMessages(within(b.t, patience), 100, nil)
	must(b.t, err)
	b.ask("POST", "reset", "")
	return fmt.Sprintf("%s | %d | %d", shown, tries, len(left))
}

// client has the retries of the SDK, with less time between them.
func (b virtualBroker) client() *azservicebus.Client {
	b.t.Helper()
	options := &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{RetryDelay: 50 * time.Millisecond}}
	client, err := azservicebus.NewClientFromConnectionString(b.connectionString, options)
	must(b.t, err)
	b.t.Cleanup(func() { _ = client.Close(within(b.t, patience)) })
	return client
}

func (b virtualBroker) ofSend(effect effect) string {
	b.t.Helper()
	sender, err := b.client().NewSender("orders", nil)
	must(b.t, err)
	// The first message opens the link.
	must(b.t, sender.SendMessage(within(b.t, patience), message("body"), nil))
	b.takeOne()
	return b.result(effect, "send", func() error {
		return sender.SendMessage(within(b.t, patience), message("body"), nil)
	})
}

func (b virtualBroker) takeOne() {
	b.t.Helper()
	receiver, err := b.client().NewReceiverForQueue("orders", receiveAndDelete)
	must(b.t, err)
	receiveOne(b.t, receiver)
	must(b.t, receiver.Close(within(b.t, patience)))
}

func (b virtualBroker) ofComplete(effect effect) string {
	b.t.Helper()
	client := b.client()
	sender, err := client.NewSender("orders", nil)
	must(b.t, err)
	must(b.t, sender.SendMessage(within(b.t, patience), message("body"), nil))
	receiver, err := client.NewReceiverForQueue("orders", nil)
	must(b.t, err)
	received := receiveOne(b.t, receiver)
	return b.result(effect, "complete", func() error {
		// When its connection is lost, this waits until its context is over.
		return receiver.CompleteMessage(within(b.t, 10*time.Second), received, nil)
	})
}

func TestEachEffectIsShownAsTheDocumentSays(t *testing.T) {
	broker := startVirtual(t, "clock.json")
	var found strings.Builder
	found.WriteString(faultsHead)
	for _, effect := range effects() {
		sent := " |  | "
		if !effect.ofLocks {
			sent = broker.ofSend(effect)
		}
		_, _ = fmt.Fprintf(&found, "| `%s` | %s | %s |\n", effect.shown, sent, broker.ofComplete(effect))
	}
	text, err := os.ReadFile(faultsDocument)
	must(t, err)
	head, tail, ok := strings.Cut(string(text), faultsTitle)
	equal(t, "whether the document has a table", ok, true)
	if os.Getenv("RAILBUS_UPDATE_FAULTS") != "" {
		rest := ""
		if at := strings.Index(tail, "\n### "); at >= 0 {
			rest = tail[at:]
		}
		must(t, os.WriteFile(faultsDocument, []byte(head+faultsTitle+"\n"+found.String()+rest), 0o644))
		return
	}
	if !strings.HasPrefix(tail, "\n"+found.String()) {
		t.Fatalf("the document says something else than\n%s", found.String())
	}
}
