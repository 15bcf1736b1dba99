package interop

// Refusals: a wrong key and a queue that does not exist, each with the error the wire contract names.

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var operations = map[string]func(t *testing.T, client *azservicebus.Client, name string) error{
	"send": func(t *testing.T, client *azservicebus.Client, name string) error {
		sender, err := client.NewSender(name, nil)
		must(t, err)
		return sender.SendMessage(within(t, patience), message("body"), nil)
	},
	"receive": func(t *testing.T, client *azservicebus.Client, name string) error {
		receiver, err := client.NewReceiverForQueue(name, nil)
		must(t, err)
		_, err = receiver.ReceiveMessages(within(t, patience), 1, nil)
		return err
	},
	"peek": func(t *testing.T, client *azservicebus.Client, name string) error {
		receiver, err := client.NewReceiverForQueue(name, nil)
		must(t, err)
		_, err = receiver.PeekMessages(within(t, patience), 1, nil)
		return err
	},
}

func TestAWrongKeyIsUnauthorized(t *testing.T) {
	wrong := strings.Replace(connectionString(), "SharedAccessKey=", "SharedAccessKey=wrong", 1)
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			q := cleared(t, "plain")
			failsWith(t, operation(t, connect(t, wrong), q.name), azservicebus.CodeUnauthorizedAccess)
			q.send(message("others are still served"))
			q.take(1)
		})
	}
}

func TestAMissingQueueIsNotFound(t *testing.T) {
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			failsWith(t, operation(t, connect(t, connectionString()), prefix+"-missing"), azservicebus.CodeNotFound)
		})
	}
}

func TestADisabledQueueRefusesWithTheErrorForThat(t *testing.T) {
	_, q := virtual(t)
	for name, operation := range operations {
		if name == "peek" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			err := operation(t, q.client, "closed")
			if err == nil || !strings.Contains(err.Error(), "is currently disabled") {
				t.Fatalf("got error %v", err)
			}
		})
	}
}
