package interop

// Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
// that `railbus identity env` prints, and the clients take its tokens. ClientSecretCredential gets them at its token
// endpoint.

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func defaultCredential(t *testing.T) *azidentity.DefaultAzureCredential {
	t.Helper()
	listen := "127.0.0.1:" + os.Getenv("RAILBUS_PORT")
	printed, err := exec.Command(os.Getenv("RAILBUS_BIN"), "identity", "env", "--listen", listen).Output()
	must(t, err)
	variables := regexp.MustCompile(`(?m)^export (\w+)=(\S+)$`).FindAllStringSubmatch(string(printed), -1)
	equal(t, "variables", len(variables), 2)
	for _, variable := range variables {
		t.Setenv(variable[1], variable[2])
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	must(t, err)
	return credential
}

func TestAProgramWithoutAConnectionStringSendsAndReceives(t *testing.T) {
	sendsAndReceives(t, defaultCredential(t))
}

func sendsAndReceives(t *testing.T, credential azcore.TokenCredential) {
	t.Helper()
	plain := cleared(t, "plain")
	client, err := azservicebus.NewClient(os.Getenv("RAILBUS_HOST"), credential, byTLS(trust(t)))
	must(t, err)
	t.Cleanup(func() { _ = client.Close(t.Context()) })
	q := queue{t, client, plain.name}
	q.send(message("without a key"))
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	equal(t, "body", string(received.Body), "without a key")
	complete(t, receiver, received)
	plain.mustBeEmpty()
}

// clientSecret is the credential of a program whose authority is the broker.
func clientSecret(t *testing.T, secret string) *azidentity.ClientSecretCredential {
	t.Helper()
	authority := "https://" + os.Getenv("RAILBUS_HOST") + ":" + os.Getenv("RAILBUS_PORT")
	options := &azidentity.ClientSecretCredentialOptions{
		ClientOptions: azcore.ClientOptions{
			Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: authority},
			Transport: trustingClient(t),
		},
		DisableInstanceDiscovery: true,
	}
	credential, err := azidentity.NewClientSecretCredential("any-tenant", "any-client", secret, options)
	must(t, err)
	return credential
}

func TestClientCredentialsGetAToken(t *testing.T) {
	sendsAndReceives(t, clientSecret(t, "SAS_KEY_VALUE"))
}

func TestAWrongSecretGetsNoToken(t *testing.T) {
	scopes := []string{"https://servicebus.azure.net/.default"}
	_, err := clientSecret(t, "WRONG_KEY_VALUE").GetToken(t.Context(), policy.TokenRequestOptions{Scopes: scopes})
	var failed *azidentity.AuthenticationFailedError
	if !errors.As(err, &failed) || failed.RawResponse == nil {
		t.Fatalf("it is not refused: %v", err)
	}
	equal(t, "status", failed.RawResponse.StatusCode, http.StatusUnauthorized)
	if !strings.Contains(err.Error(), "invalid_client") {
		t.Fatalf("it is refused for another reason: %v", err)
	}
}

// otherAudience is a credential whose tokens are for another service.
type otherAudience struct{ azcore.TokenCredential }

func (other otherAudience) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	options.Scopes = []string{"https://vault.azure.net/.default"}
	return other.TokenCredential.GetToken(ctx, options)
}

func TestATokenForAnotherServiceIsRefused(t *testing.T) {
	plain := cleared(t, "plain")
	other := otherAudience{defaultCredential(t)}
	client, err := azservicebus.NewClient(os.Getenv("RAILBUS_HOST"), other, byTLS(trust(t)))
	must(t, err)
	t.Cleanup(func() { _ = client.Close(t.Context()) })
	sender, err := client.NewSender(plain.name, nil)
	must(t, err)
	err = sender.SendMessage(within(t, patience), message("refused"), nil)
	failsWith(t, err, azservicebus.CodeUnauthorizedAccess)
	plain.mustBeEmpty()
	_, err = administrationWith(t, other).GetQueue(t.Context(), plain.name, nil)
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
		t.Fatalf("it is not refused: %v", err)
	}
}

// trustingClient is an HTTP client that trusts the broker's authority.
func trustingClient(t *testing.T) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t)}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func administrationWith(t *testing.T, credential azcore.TokenCredential) *admin.Client {
	t.Helper()
	namespace := os.Getenv("RAILBUS_HOST") + ":" + os.Getenv("RAILBUS_PORT")
	options := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: trustingClient(t)}}
	client, err := admin.NewClient(namespace, credential, options)
	must(t, err)
	return client
}

func TestAProgramWithoutAConnectionStringAdministers(t *testing.T) {
	client := administrationWith(t, defaultCredential(t))
	name := fresh("identity")
	_, err := client.CreateQueue(t.Context(), name, nil)
	must(t, err)
	_, err = client.DeleteQueue(t.Context(), name, nil)
	must(t, err)
}
