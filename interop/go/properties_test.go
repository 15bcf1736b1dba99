package interop

// What a message carries comes back as it was sent.

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func TestApplicationPropertiesOfEveryTypeComeBackEqual(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("body")
	sent.ApplicationProperties = map[string]any{
		"nil":         nil,
		"true":        true,
		"false":       false,
		"uint8":       uint8(math.MaxUint8),
		"uint16":      uint16(math.MaxUint16),
		"uint32 zero": uint32(0),
		"uint32":      uint32(math.MaxUint32),
		"uint64 zero": uint64(0),
		"uint64":      uint64(math.MaxUint64),
		"int8":        int8(math.MinInt8),
		"int16":       int16(math.MinInt16),
		"int32 small": int32(-1),
		"int32":       int32(math.MinInt32),
		"int64 small": int64(-1),
		"int64":       int64(math.MinInt64),
		"float32":     float32(1.5),
		"float64":     1.0000000000000002,
		"string":      "naïve ☃ 𝄞",
		"empty":       "",
		"long":        strings.Repeat("s", 300),
		"symbol":      amqp.Symbol("a-symbol"),
		"bytes":       []byte{0, 1, 254, 255},
		"uuid":        amqp.UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		"time":        time.UnixMilli(1709209815250).UTC(),
	}
	q.send(sent)
	received := q.take(1)[0].ApplicationProperties
	equal(t, "number of properties", len(received), len(sent.ApplicationProperties))
	for name, value := range sent.ApplicationProperties {
		// A symbol comes back as the SDK's string, everything else as its own type.
		if symbol, ok := value.(amqp.Symbol); ok {
			value = string(symbol)
		}
		if moment, ok := received[name].(time.Time); ok {
			received[name] = moment.UTC()
		}
		equal(t, name, received[name], value)
	}
}

func TestMessagePropertiesComeBackEqual(t *testing.T) {
	q := cleared(t, "plain")
	sent := message("text")
	sent.CorrelationID = pointer("the request")
	sent.Subject = pointer("orders")
	sent.ContentType = pointer("application/json; charset=utf-8")
	sent.To = pointer("somewhere")
	sent.ReplyTo = pointer("the reply queue")
	sent.ReplyToSessionID = pointer("reply session")
	sent.SessionID = pointer("session")
	sent.PartitionKey = pointer("session")
	sent.TimeToLive = pointer(10 * time.Minute)
	q.send(sent)
	equal(t, "message", *q.take(1)[0].Message(), *sent)
}

func TestBodiesOfEveryKindComeBackEqual(t *testing.T) {
	bodies := map[string]azservicebus.AMQPAnnotatedMessageBody{
		"data":          {Data: [][]byte{{0, 1, 255}}},
		"data sections": {Data: [][]byte{{1, 2}, {}, {3}}},
		"value":         {Value: map[string]any{"key": []any{int64(1), "two", 2.5}}},
		"sequence":      {Sequence: [][]any{{int64(1), "two"}, {true}}},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			q := cleared(t, "plain")
			must(t, q.sender().SendAMQPAnnotatedMessage(within(t, patience), &azservicebus.AMQPAnnotatedMessage{Body: body}, nil))
			equal(t, "body", q.take(1)[0].RawAMQPMessage.Body, body)
		})
	}
}
