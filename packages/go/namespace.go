package railbus

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

var namespaceKey = regexp.MustCompile(`SharedAccessKeyName=([^;]+);SharedAccessKey=([^;]+)`)

// Namespace is a namespace of a broker: entities, messages, keys and fault rules of its own.
type Namespace struct {
	Name string
	// ConnectionString is what the Azure SDKs take.
	ConnectionString string

	address string
}

// FaultRule says which operations fail and how. The broker documents the members of Match and the values of Effect.
type FaultRule struct {
	Name   string         `json:"name"`
	Match  map[string]any `json:"match,omitempty"`
	Effect any            `json:"effect"`
	// Matched and Injected count the operations that the rule fits, and those that failed by it.
	Matched  int `json:"matched,omitempty"`
	Injected int `json:"injected,omitempty"`
}

// Reason is something that stands between a message and a receiver.
type Reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Namespace makes a namespace with the entities of the broker and no messages. It is deleted at the end of the test.
func (broker *Broker) Namespace(t testing.TB) *Namespace {
	t.Helper()
	namespace, err := CreateNamespace(broker.Address, "", "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespace.Delete(); err != nil {
			t.Errorf("railbus: %v", err)
		}
	})
	return namespace
}

// CreateNamespace makes a namespace of the broker at an address, which another process may have started. An empty name
// stands for a random one. The namespace has the entities of the namespace like, or none if like is empty.
func CreateNamespace(address, name, like string) (*Namespace, error) {
	if name == "" {
		// It never fails.
		var random [16]byte
		_, _ = rand.Read(random[:])
		name = fmt.Sprintf("test-%x", random)
	}
	definition := map[string]any{}
	if like != "" {
		definition["like"] = like
	}
	namespace := &Namespace{Name: name, address: address}
	var answer struct {
		ConnectionString string `json:"connection-string"`
	}
	if err := namespace.request(http.MethodPut, "", definition, &answer); err != nil {
		return nil, err
	}
	if answer.ConnectionString == "" {
		return nil, fmt.Errorf("the namespace %s exists already", name)
	}
	namespace.ConnectionString = answer.ConnectionString
	return namespace, nil
}

// Delete deletes the namespace with all that is in it, and closes its connections.
func (namespace *Namespace) Delete() error {
	return namespace.request(http.MethodDelete, "", nil, nil)
}

// Reset takes away all messages and fault rules, and makes the entities anew that the namespace was made with.
func (namespace *Namespace) Reset() error {
	return namespace.request(http.MethodPost, "/reset", nil, nil)
}

// Snapshot keeps the entities and messages as they are now, under a name of lower-case letters, digits and -.
func (namespace *Namespace) Snapshot(name string) error {
	return namespace.request(http.MethodPost, "/snapshots", map[string]any{"name": name}, nil)
}

// Restore goes back to what was kept, as often as is wanted. Locks are void then, and links are detached.
func (namespace *Namespace) Restore(name string) error {
	return namespace.request(http.MethodPost, "/restore", map[string]any{"snapshot": name}, nil)
}

// Advance lets time pass in this namespace alone. What becomes due has happened when it returns.
func (namespace *Namespace) Advance(duration time.Duration) error {
	return namespace.request(http.MethodPost, "/clock", map[string]any{"advance": iso(duration)}, nil)
}

// iso is a duration in ISO 8601.
func iso(duration time.Duration) string {
	return fmt.Sprintf("PT%.3fS", duration.Seconds())
}

// Fault adds a fault rule.
func (namespace *Namespace) Fault(rule FaultRule) error {
	return namespace.request(http.MethodPost, "/faults", rule, nil)
}

// Faults are the fault rules.
func (namespace *Namespace) Faults() ([]FaultRule, error) {
	var answer struct {
		Faults []FaultRule `json:"faults"`
	}
	err := namespace.request(http.MethodGet, "/faults", nil, &answer)
	return answer.Faults, err
}

// ClearFaults takes all fault rules away.
func (namespace *Namespace) ClearFaults() error {
	return namespace.request(http.MethodDelete, "/faults", nil, nil)
}

// Explain says why messages of an entity are not delivered. What stands in the way most is first.
func (namespace *Namespace) Explain(entity string) ([]Reason, error) {
	// The name of the key chooses the namespace.
	key := namespaceKey.FindStringSubmatch(namespace.ConnectionString)
	if key == nil {
		return nil, errors.New("the connection string has no key")
	}
	authorization := "Basic " + base64.StdEncoding.EncodeToString([]byte(key[1]+":"+key[2]))
	var answer struct {
		Reasons []Reason `json:"reasons"`
	}
	path := "entities/" + (&url.URL{Path: entity}).EscapedPath() + "/explain"
	err := request(namespace.address, http.MethodGet, path, authorization, nil, &answer)
	return answer.Reasons, err
}

func (namespace *Namespace) request(method, path string, body, answer any) error {
	path = "namespaces/" + url.PathEscape(namespace.Name) + path
	return request(namespace.address, method, path, "", body, answer)
}

// request sends a body as JSON to a path under /$railbus/ and reads the answer, unless they are nil.
func request(address, method, path, authorization string, body, answer any) error {
	var encoded io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		encoded = bytes.NewReader(text)
	}
	question, err := http.NewRequest(method, "http://"+address+"/$railbus/"+path, encoded)
	if err != nil {
		return err
	}
	if authorization != "" {
		question.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(question)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return errors.New(strings.TrimSpace(string(text)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
