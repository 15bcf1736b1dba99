// "char" is a char, which this SDK does not send: here it is a text.
// "duration" is a duration, which this SDK does not send: here it is a text.
// "offset" is a datetime-offset, which this SDK does not send: here it is a text.
// "uri" is a uri, which this SDK does not send: here it is a text.
message := &azservicebus.Message{
	Body: []byte("{\"text\": \"naïve ☃ 𝄞 \\\"\\\\\", \"end\": \"\u0000\u0085\u2028\u202e\ufeff\"}\n"),
	MessageID: to.Ptr("id \"1\"\\"),
	CorrelationID: to.Ptr("the request"),
	Subject: to.Ptr("orders\u2028and\u202e more"),
	ContentType: to.Ptr("application/json; charset=utf-8"),
	SessionID: to.Ptr("customer"),
	To: to.Ptr("somewhere"),
	ReplyTo: to.Ptr("answers"),
	ReplyToSessionID: to.Ptr("reply session"),
	PartitionKey: to.Ptr("customer"),
	ApplicationProperties: map[string]any{"__proto__": "a name", "binary": []byte("\x00\xff\x22"), "byte": int8(-128), "char": "ä", "double": float64(1.5), "duration": "PT1.5S", "empty": "", "float": float32(0.5), "huge": float64(1e+300), "infinite": math.Inf(-1), "int": int32(-2147483648), "large": int64(9007199254740993), "long": int64(5), "lowest": int64(-9223372036854775808), "negative": int64(-5000000000), "null": nil, "offset": "2024-02-29T12:30:15Z", "short": int16(-32768), "symbol": amqp.Symbol("s"), "text": "naïve ☃ \"'\n\\u0041", "timestamp": time.UnixMilli(1709209815250), "true": true, "ubyte": uint8(255), "uint": uint32(4294967295), "ulong": uint64(18446744073709551615), "uri": "https://example.org/a?b=c", "ushort": uint16(65535), "uuid": amqp.UUID{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f}, "whole": float64(5.0)},
}
sender, err := client.NewSender("events", nil)
if err != nil {
	return err
}
err = sender.SendMessage(ctx, message, nil)
