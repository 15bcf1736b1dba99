package interop

// Programs with tokens of a configured issuer, as in production: a token has the rights that the broker's grants give to
// its claims. What is refused leaves everything as it was. (docs/spec/amqp.md#2.8, docs/spec/admin.md#2.3)

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

const (
	orders = "orders"
	// The issuer whose keys are in a file. It has the usual audience and the usual grants.
	fileIssuer    = "https://keys.example"
	usualAudience = "https://servicebus.azure.net"
)

var (
	writer   = claims{"roles": []string{"Orders.Write"}}
	reader   = claims{"scp": "openid orders.read"}
	operator = claims{"groups": []string{"everyone", "operators"}}
	worker   = claims{"sub": "worker"}
)

// trusting is a broker that trusts a provider, and keys in a file.
type trusting struct {
	virtualBroker
	provider provider
	file     string
	// The key that is in the file at first.
	first key
}

// startTrusting starts both. What connects by TLS finds this broker, in the place of that of the run, until the test ends.
func startTrusting(t *testing.T) trusting {
	t.Helper()
	directory := t.TempDir()
	file := filepath.Join(directory, "keys.json")
	world := trusting{provider: startProvider(t), file: file, first: rsaKey(t, "in-the-file")}
	world.t = t
	world.writeKeys(world.first)
	template, err := os.ReadFile("../issuers.toml")
	must(t, err)
	names := strings.NewReplacer("ISSUER", world.provider.issuer, "KEYS_FILE", world.file)
	settings := filepath.Join(directory, "railbus.toml")
	must(t, os.WriteFile(settings, []byte(names.Replace(string(template))), 0o600))
	authority := filepath.Join(directory, "tls")
	world.virtualBroker = startVirtual(t, "clock.json", "--config", settings, "--tls-dir", authority)
	_, port, err := net.SplitHostPort(world.address)
	must(t, err)
	t.Setenv("RAILBUS_CA", filepath.Join(authority, "ca.pem"))
	t.Setenv("RAILBUS_PORT", port)
	return world
}

// writeKeys replaces the file as a whole, so that it is never read half written.
func (w trusting) writeKeys(keys ...key) {
	w.t.Helper()
	text, err := json.Marshal(keySet(keys...))
	must(w.t, err)
	must(w.t, os.WriteFile(w.file+".new", text, 0o600))
	must(w.t, os.Rename(w.file+".new", w.file))
}

// client does not retry.
func (w trusting) client(t *testing.T, of credential, options *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	options.RetryOptions = azservicebus.RetryOptions{MaxRetries: -1}
	namespace := os.Getenv("RAILBUS_HOST")
	if options.CustomEndpoint == "" {
		namespace += ":" + os.Getenv("RAILBUS_PORT")
	}
	client, err := azservicebus.NewClient(namespace, of, options)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(t.Context()) })
	return client
}

func (w trusting) by(t *testing.T, of credential) *azservicebus.Client {
	t.Helper()
	return w.client(t, of, byTLS(trust(t)))
}

// operated is the queue as a client sees it that may do everything.
func (w trusting) operated() queue {
	w.t.Helper()
	return queue{w.t, w.by(w.t, w.provider.credential("RS256", operator)), orders}
}

// mustBeUntouched checks that the queue holds the one message that was sent before.
func (q queue) mustBeUntouched() {
	q.t.Helper()
	left := q.peek()
	equal(q.t, "messages", len(left), 1)
	equal(q.t, "body", string(left[0].Body), "untouched")
	equal(q.t, "count", left[0].DeliveryCount, uint32(1))
}

func TestProgramsWithTokensOfAProviderSendAndReceive(t *testing.T) {
	world := startTrusting(t)
	for algorithm := range world.provider.keys {
		for transport, by := range transports {
			t.Run(algorithm+", "+transport, func(t *testing.T) {
				sent := queue{t, world.client(t, world.provider.credential(algorithm, writer), by(trust(t))), orders}
				sent.send(message("by a token"))
				given := queue{t, world.client(t, world.provider.credential(algorithm, reader), by(trust(t))), orders}
				receiver := given.receiver(nil)
				received := receiveOne(t, receiver)
				equal(t, "body", string(received.Body), "by a token")
				must(t, receiver.RenewMessageLock(within(t, patience), received, nil))
				complete(t, receiver, received)
			})
		}
	}
	world.operated().mustBeEmpty()
}

func TestASubjectHasItsRightsInEveryQueue(t *testing.T) {
	world := startTrusting(t)
	client := world.by(t, world.provider.credential("RS256", worker))
	for _, name := range []string{orders, "target"} {
		q := queue{t, client, name}
		q.send(message("by a token"))
		equal(t, "body", string(q.take(1)[0].Body), "by a token")
	}
}

func TestATokenHasNoRightBesideItsGrants(t *testing.T) {
	world := startTrusting(t)
	q := world.operated()
	q.send(message("untouched"))
	for name, attempt := range map[string]struct {
		claims           claims
		operation, queue string
	}{
		"a writer does not receive":             {writer, "receive", orders},
		"a writer does not peek":                {writer, "peek", orders},
		"a reader does not send":                {reader, "send", orders},
		"a writer elsewhere":                    {writer, "send", "target"},
		"a reader elsewhere":                    {reader, "receive", "target"},
		"a role of Azure's beside other grants": {claims{"roles": []string{"Azure Service Bus Data Owner"}}, "send", orders},
		"a subject as a role":                   {claims{"roles": []string{"worker"}}, "receive", orders},
		"nothing claimed":                       {claims{}, "send", orders},
	} {
		t.Run(name, func(t *testing.T) {
			client := world.by(t, world.provider.credential("RS256", attempt.claims))
			failsWith(t, operations[attempt.operation](t, client, attempt.queue), azservicebus.CodeUnauthorizedAccess)
		})
	}
	q.mustBeUntouched()
}

// but are the claims of an operator, with another one.
func but(claim string, value any) claims {
	return claims{"groups": operator["groups"], claim: value}
}

// bad has each credential with the text and the sub code that refuse it.
func (w trusting) bad(t *testing.T) map[string]badCredential {
	t.Helper()
	issuer, sign := w.provider.issuer, w.provider.keys["RS256"].sign
	now := time.Now()
	return map[string]badCredential{
		"unknown issuer":           {credential{"https://evil.example", operator, sign}, "IssuerNotFound", "40109"},
		"another key of that name": {credential{issuer, operator, rsaKey(t, "first").sign}, "InvalidSignature", "40103"},
		"key of another issuer":    {credential{fileIssuer, claims{"roles": []string{"Manage"}}, sign}, "InvalidSignature", "40103"},
		"wrong audience":           {credential{issuer, but("aud", usualAudience), sign}, "InvalidAudience", "40104"},
		"expired":                  {credential{issuer, but("exp", now.Add(-10*time.Minute).Unix()), sign}, "ExpiredToken", "40106"},
		"not yet":                  {credential{issuer, but("nbf", now.Add(10*time.Minute).Unix()), sign}, "InvalidToken", "40100"},
		"unsigned":                 {credential{issuer, operator, unsigned}, "MalformedToken", "40105"},
		"no JWT":                   {credential{issuer, operator, opaque}, "MalformedToken", "40105"},
	}
}

type badCredential struct {
	credential    credential
	text, subCode string
}

func contains(t *testing.T, err error, text string) {
	t.Helper()
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %v, want %s in it", err, text)
	}
}

func TestATokenThatIsNotGoodIsRefusedAndNothingChanges(t *testing.T) {
	world := startTrusting(t)
	q := world.operated()
	q.send(message("untouched"))
	for name, bad := range world.bad(t) {
		t.Run(name, func(t *testing.T) {
			for _, operation := range operations {
				err := operation(t, world.by(t, bad.credential), orders)
				failsWith(t, err, azservicebus.CodeUnauthorizedAccess)
				contains(t, err, bad.text)
			}
		})
	}
	q.mustBeUntouched()
}

func TestKeysAreRotatedWithoutARestart(t *testing.T) {
	world := startTrusting(t)
	first, second := world.first, rsaKey(t, "its-successor")
	sender := claims{"roles": []string{"Azure Service Bus Data Sender"}, "aud": usualAudience}
	// refused says whether a send is, by the signature of its token.
	refused := func(by key) bool {
		client := world.by(t, credential{fileIssuer, sender, by.sign})
		defer func() { _ = client.Close(t.Context()) }()
		err := operations["send"](t, client, orders)
		return err != nil && strings.Contains(err.Error(), "InvalidSignature")
	}
	bystander := queue{t, world.by(t, world.provider.credential("RS256", worker)), orders}.sender()
	must(t, bystander.SendMessage(t.Context(), message("before"), nil))
	equal(t, "refused before its time", refused(second), true)
	equal(t, "refused", refused(first), false)
	world.writeKeys(first, second)
	eventually(t, "the new key", func() bool { return !refused(second) })
	equal(t, "refused beside the new key", refused(first), false)
	world.writeKeys(second)
	eventually(t, "the end of the old key", func() bool { return refused(first) })
	equal(t, "refused alone", refused(second), false)
	// Links with tokens of other keys are kept.
	must(t, bystander.SendMessage(t.Context(), message("after"), nil))
}

func TestTheDevelopmentKeyIsNotValidBesideAnIssuer(t *testing.T) {
	world := startTrusting(t)
	key := "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
	text := strings.Replace(world.connectionString, "UseDevelopmentEmulator", key+"UseDevelopmentEmulator", 1)
	for _, operation := range operations {
		failsWith(t, operation(t, connect(t, text), orders), azservicebus.CodeUnauthorizedAccess)
	}
	world.operated().mustBeEmpty()
}

func TestAProgramWithATokenOfAProviderAdministers(t *testing.T) {
	world := startTrusting(t)
	for algorithm := range world.provider.keys {
		client := administrationWith(t, world.provider.credential(algorithm, operator))
		name := fresh("issuer")
		created := &admin.CreateQueueOptions{Properties: &admin.QueueProperties{MaxDeliveryCount: pointer(int32(7))}}
		_, err := client.CreateQueue(t.Context(), name, created)
		must(t, err)
		changed := admin.QueueProperties{MaxDeliveryCount: pointer(int32(8))}
		_, err = client.UpdateQueue(t.Context(), name, changed, nil)
		must(t, err)
		queue, err := client.GetQueue(t.Context(), name, nil)
		must(t, err)
		equal(t, "deliveries", *queue.MaxDeliveryCount, int32(8))
		_, err = client.DeleteQueue(t.Context(), name, nil)
		must(t, err)
		gone, err := client.GetQueue(t.Context(), name, nil)
		must(t, err)
		equal(t, "is gone", gone == nil, true)
	}
}

// mustNotAdminister checks that neither a creation nor a deletion is possible, and that both are refused with a text.
func mustNotAdminister(t *testing.T, world trusting, of credential, text string) {
	t.Helper()
	client := administrationWith(t, of)
	_, created := client.CreateQueue(t.Context(), "denied", nil)
	_, deleted := client.DeleteQueue(t.Context(), orders, nil)
	for _, err := range []error{created, deleted} {
		var refused *azcore.ResponseError
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
			t.Fatalf("it is not refused: %v", err)
		}
		contains(t, err, text)
	}
	manager := administrationWith(t, world.provider.credential("RS256", operator))
	denied, err := manager.GetQueue(t.Context(), "denied", nil)
	must(t, err)
	equal(t, "is not there", denied == nil, true)
	left, err := manager.GetQueue(t.Context(), orders, nil)
	must(t, err)
	equal(t, "is still there", left != nil, true)
}

func TestATokenWithoutManageAdministersNothing(t *testing.T) {
	world := startTrusting(t)
	mustNotAdminister(t, world, world.provider.credential("RS256", worker), "Manage")
}

func TestAdministrationWithATokenThatIsNotGoodIsRefused(t *testing.T) {
	world := startTrusting(t)
	for name, bad := range world.bad(t) {
		t.Run(name, func(t *testing.T) {
			mustNotAdminister(t, world, bad.credential, "SubCode="+bad.subCode+". "+bad.text)
		})
	}
}
