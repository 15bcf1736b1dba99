package interop

// TLS, with AMQP or WebSocket inside: nothing but the broker's own certificate authority is trusted. Without
// `UseDevelopmentEmulator=true` this SDK speaks TLS. A port in the connection string would become a part of the name
// that it asks the broker for, which no certificate has, so the port is said by `CustomEndpoint`. How WebSocket is
// spoken it leaves to its user.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// trust is what a client is told to go by.
func trust(t *testing.T) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("RAILBUS_CA"))
	must(t, err)
	authorities := x509.NewCertPool()
	equal(t, "authority", authorities.AppendCertsFromPEM(text), true)
	return &tls.Config{RootCAs: authorities}
}

func byTLS(config *tls.Config) *azservicebus.ClientOptions {
	endpoint := os.Getenv("RAILBUS_HOST") + ":" + os.Getenv("RAILBUS_PORT")
	return &azservicebus.ClientOptions{TLSConfig: config, CustomEndpoint: endpoint}
}

func byWebSocket(config *tls.Config) *azservicebus.ClientOptions {
	dial := func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		options := &websocket.DialOptions{Subprotocols: []string{"amqp"}, HTTPClient: client}
		socket, _, err := websocket.Dial(ctx, args.Host, options)
		if err != nil {
			return nil, err
		}
		return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
	}
	return &azservicebus.ClientOptions{NewWebSocketConn: dial}
}

var transports = map[string]func(*tls.Config) *azservicebus.ClientOptions{
	"TLS":                  byTLS,
	"WebSocket within TLS": byWebSocket,
}

func secured(t *testing.T, options *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	text := strings.Replace(connectionString(), "UseDevelopmentEmulator=true;", "", 1)
	if options.CustomEndpoint != "" {
		text = strings.Replace(text, ":"+os.Getenv("RAILBUS_PORT"), "", 1)
	}
	client, err := azservicebus.NewClientFromConnectionString(text, options)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func exchange(t *testing.T, suffix string, options *azservicebus.ClientOptions, body []byte) {
	t.Helper()
	q := cleared(t, suffix)
	q.client = secured(t, options)
	sent := message("")
	sent.Body = body
	q.send(sent)
	receiver := q.receiver(nil)
	received := receiveOne(t, receiver)
	equal(t, "body", bytes.Equal(received.Body, body), true)
	must(t, receiver.RenewMessageLock(within(t, patience), received, nil))
	must(t, receiver.CompleteMessage(within(t, patience), received, nil))
	q.mustBeEmpty()
}

func TestAMessageGoesOverTLS(t *testing.T) {
	exchange(t, "plain", byTLS(trust(t)), []byte("within TLS"))
}

func TestAMessageGoesOverWebSocketWithinTLS(t *testing.T) {
	exchange(t, "plain", byWebSocket(trust(t)), []byte("within WebSocket within TLS"))
}

func TestALargeMessageGoesOverTLS(t *testing.T) {
	for name, by := range transports {
		t.Run(name, func(t *testing.T) {
			body := make([]byte, 900<<10)
			_, _ = rand.Read(body)
			exchange(t, "large", by(trust(t)), body)
		})
	}
}

func TestAClientThatDoesNotTrustTheAuthorityDoesNotConnect(t *testing.T) {
	for name, by := range transports {
		t.Run(name, func(t *testing.T) {
			q := cleared(t, "plain")
			options := by(&tls.Config{})
			options.RetryOptions = azservicebus.RetryOptions{MaxRetries: -1}
			sender, err := secured(t, options).NewSender(q.name, nil)
			must(t, err)
			err = sender.SendMessage(within(t, patience), message("body"), nil)
			if err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Fatalf("got error %v", err)
			}
			q.mustBeEmpty()
		})
	}
}
