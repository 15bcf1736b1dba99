// By_name administers, sends and receives by a connection string that has neither a port nor the flag of the emulator.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	connectionString := os.Getenv("RAILBUS_CONNECTION_STRING")
	administration := must(admin.NewClientFromConnectionString(connectionString, nil))
	must(administration.CreateQueue(ctx, "orders", nil))
	client := must(azservicebus.NewClientFromConnectionString(connectionString, nil))
	sender := must(client.NewSender("orders", nil))
	if err := sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("by name")}, nil); err != nil {
		log.Fatal(err)
	}
	receiver := must(client.NewReceiverForQueue("orders", nil))
	received := must(receiver.ReceiveMessages(ctx, 1, nil))[0]
	if err := receiver.CompleteMessage(ctx, received, nil); err != nil {
		log.Fatal(err)
	}
	if err := client.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(received.Body))
}
