package interop

// Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says.
//
// Each effect happens once, and to two operations in a row where the second one waits for the first: then it
// is the second that counts. `tries` is how often the broker has seen it, so 2 is one retry; `messages` is how
// many are in the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.

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
	// An effect of locks can be had on a completion alone, one of sends is not seen there.
	ofLocks, ofSends bool
	// Whether the first operation takes its turn or the credit, and the second one waits.
	ofSecond bool
}

func (e effect) count() int {
	if e.ofSecond {
		return 2
	}
	return 1
}

func effects() []effect {
	var all []effect
	for _, refused := range []string{"server-busy", "timeout", "quota-exceeded", "entity-disabled", "not-found",
		"unauthorized", "internal-error"} {
		all = append(all, effect{shown: "refuse: " + refused, json: fmt.Sprintf(`{"refuse": %q}`, refused)})
	}
	return append(all,
		effect{shown: "detach: detach-forced", json: `{"detach": "detach-forced"}`},
		effect{shown: "end: internal-error", json: `{"end": "internal-error"}`},
		effect{shown: "close: connection-forced", json: `{"close": "connection-forced"}`},
		effect{shown: "expire-token", json: `"expire-token"`},
		effect{shown: "disconnect: before", json: `{"disconnect": "before"}`},
		effect{shown: "disconnect: after", json: `{"disconnect": "after"}`},
		effect{shown: "delay-ms: 50", json: `{"delay-ms": 50}`},
		effect{shown: "throttle-per-second: 20", json: `{"throttle-per-second": 20}`, ofSecond: true},
		effect{shown: "withhold-credit-ms: 50", json: `{"withhold-credit-ms": 50}`, ofSends: true, ofSecond: true},
		effect{shown: "lose-lock", json: `"lose-lock"`, ofLocks: true},
		effect{shown: "deliver-again", json: `"deliver-again"`, ofLocks: true})
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

// result is what a user of the SDK sees of the last of some operations, how often the broker saw it, and how
// many messages there are then.
func (b virtualBroker) result(effect effect, operation string, do func(index int) error) (string, int, int) {
	b.t.Helper()
	rule := `{"faults": [{"name": "once", "match": {"operations": [%q], "times": %d}, "effect": %s}]}`
	b.ask("PUT", "faults", fmt.Sprintf(rule, operation, effect.count(), effect.json))
	last := effect.count() - 1
	for index := range last {
		must(b.t, do(index))
	}
	shown := "nothing"
	if err := do(last); err != nil {
		shown = fmt.Sprintf("`%T`", err)
		if sdkCode := code(err); sdkCode != "" {
			shown = fmt.Sprintf("`%s`", sdkCode)
		}
	}
	tries := b.ask("GET", "faults", "") - last
	b.ask("DELETE", "faults", "")
	receiver, err := b.client().NewReceiverForQueue("orders", nil)
	must(b.t, err)
	left, err := receiver.PeekMessages(within(b.t, patience), 100, nil)
	must(b.t, err)
	b.ask("POST", "reset", "")
	return shown, tries, len(left)
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
	shown, tries, left := b.result(effect, "send", func(int) error {
		return sender.SendMessage(within(b.t, patience), message("body"), nil)
	})
	return fmt.Sprintf("%s | %d | %d", shown, tries, left-effect.count()+1)
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
	receiver, err := client.NewReceiverForQueue("orders", nil)
	must(b.t, err)
	var received []*azservicebus.ReceivedMessage
	for range effect.count() {
		must(b.t, sender.SendMessage(within(b.t, patience), message("body"), nil))
		received = append(received, receiveOne(b.t, receiver))
	}
	shown, tries, left := b.result(effect, "complete", func(index int) error {
		// When its connection is lost, this waits until its context is over.
		return receiver.CompleteMessage(within(b.t, 10*time.Second), received[index], nil)
	})
	return fmt.Sprintf("%s | %d | %d", shown, tries, left)
}

func TestEachEffectIsShownAsTheDocumentSays(t *testing.T) {
	broker := startVirtual(t, "clock.json")
	var found strings.Builder
	found.WriteString(faultsHead)
	for _, effect := range effects() {
		sent, completed := " |  | ", " |  | "
		if !effect.ofLocks {
			sent = broker.ofSend(effect)
		}
		if !effect.ofSends {
			completed = broker.ofComplete(effect)
		}
		_, _ = fmt.Fprintf(&found, "| `%s` | %s | %s |\n", effect.shown, sent, completed)
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
