using Azure.Core.Amqp;

namespace Railbus.Interop;

/// <summary>Sending: single messages and batches, and that what arrives is what was sent.</summary>
public class Sending
{
    [Fact]
    public async Task ASentMessageArrivesWithItsBody()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        Assert.Equal("body", (await queue.Receiver.Take()).Body.ToString());
    }

    [Fact]
    public async Task AnEmptyBodyArrivesEmpty()
    {
        await using var queue = await Queue.Create();
        await queue.Send("");
        Assert.Empty((await queue.Receiver.Take()).Body.ToArray());
    }

    [Fact]
    public async Task AListArrivesWhole()
    {
        await using var queue = await Queue.Create();
        var sent = Enumerable.Range(0, 10).Select(number => new ServiceBusMessage($"{number}")).ToList();
        await queue.Sender.SendMessagesAsync(sent);
        Assert.Equal(sent.Select(message => message.Body.ToString()), (await queue.Receiver.ReceiveMany(10)).Bodies());
    }

    [Fact]
    public async Task SequenceNumbersRiseAndEnqueuedTimesAreNow()
    {
        await using var queue = await Queue.Create();
        var before = DateTimeOffset.UtcNow.AddSeconds(-5);
        await Task.WhenAll(Enumerable.Range(0, 5).Select(number => queue.Send($"{number}")));
        var received = await queue.Receiver.ReceiveMany(5);
        Assert.Equal([1, 2, 3, 4, 5], received.Select(message => message.SequenceNumber));
        var times = received.Select(message => message.EnqueuedTime).ToList();
        Assert.Equal(times.Order(), times);
        Assert.All(times, time => Assert.InRange(time, before, DateTimeOffset.UtcNow.AddSeconds(5)));
    }

    [Fact]
    public async Task ABatchArrivesInItsOrder()
    {
        await using var queue = await Queue.Create();
        using var batch = await queue.Sender.CreateMessageBatchAsync();
        Assert.All(["one", "two", "three"], body => Assert.True(batch.TryAddMessage(new(body))));
        await queue.Sender.SendMessagesAsync(batch);
        var received = await queue.Receiver.ReceiveMany(3);
        Assert.Equal(["one", "two", "three"], received.Bodies());
        Assert.Equal([1, 2, 3], received.Select(message => message.SequenceNumber));
    }

    [Fact]
    public async Task AFullBatchTakesNoMoreAndIsSent()
    {
        await using var queue = await Queue.Create();
        using var batch = await queue.Sender.CreateMessageBatchAsync();
        var body = new byte[50 << 10];
        while (batch.TryAddMessage(new(body)))
        {
            Assert.InRange(batch.SizeInBytes, 0, batch.MaxSizeInBytes);
        }
        Assert.Equal(batch.MaxSizeInBytes / (body.Length + 512), batch.Count);
        await queue.Sender.SendMessagesAsync(batch);
        Assert.All(await queue.Receiver.ReceiveMany(batch.Count),
            message => Assert.Equal(body, message.Body.ToArray()));
    }

    [Fact]
    public async Task TwoHundredMessagesAreSentAtOnce()
    {
        await using var queue = await Queue.Create();
        var bodies = Enumerable.Range(0, 200).Select(number => number.ToString()).ToArray();
        await Task.WhenAll(bodies.Select(queue.Send));
        Assert.Equal(bodies.Order(), (await queue.Bodies()).Order());
    }

    [Fact]
    public async Task MessagePropertiesArriveAsTheyWereSent()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage("body")
        {
            MessageId = "id",
            CorrelationId = "correlation",
            Subject = "subject",
            To = "to",
            ReplyTo = "reply-to",
            ContentType = "text/plain",
            SessionId = "session",
            ReplyToSessionId = "reply-to-session",
            PartitionKey = "session",
            TransactionPartitionKey = "transaction",
            TimeToLive = TimeSpan.FromMinutes(10),
        });
        var received = await queue.Receiver.ReceiveOne();
        Assert.Equal("id", received.MessageId);
        Assert.Equal("correlation", received.CorrelationId);
        Assert.Equal("correlation", received.CorrelationId);
        Assert.Equal("subject", received.Subject);
        Assert.Equal("to", received.To);
        Assert.Equal("reply-to", received.ReplyTo);
        Assert.Equal("text/plain", received.ContentType);
        Assert.Equal("session", received.SessionId);
        Assert.Equal("reply-to-session", received.ReplyToSessionId);
        Assert.Equal("session", received.PartitionKey);
        Assert.Equal("transaction", received.TransactionPartitionKey);
        Assert.Equal(TimeSpan.FromMinutes(10), received.TimeToLive);
    }

    public static TheoryData<object> PropertyValues() =>
    [
        "text", "", "naïve ☃ 𝄞", true, false, (byte)200, (sbyte)-5, (short)-300, (ushort)60_000, -70_000, 4_000_000_000u, long.MinValue,
        ulong.MaxValue, 1.5f, -2.25, 79.228m, 'x', Guid.Parse("00112233-4455-6677-8899-aabbccddeeff"),
        new DateTime(2026, 11, 5, 6, 7, 8, 9, DateTimeKind.Utc),
        new DateTimeOffset(2026, 11, 5, 6, 7, 8, 9, TimeSpan.Zero), TimeSpan.FromTicks(12_345_678_901),
        new Uri("https://example.com/path?query"),
    ];

    [Theory]
    [MemberData(nameof(PropertyValues), DisableDiscoveryEnumeration = true)]
    public async Task AnApplicationPropertyArrivesWithItsTypeAndValue(object value)
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage { ApplicationProperties = { ["key"] = value } });
        var received = (await queue.Receiver.ReceiveOne()).ApplicationProperties["key"];
        Assert.Equal((value.GetType(), value), (received.GetType(), received));
    }

    [Fact]
    public async Task AnApplicationPropertyMayBeNull()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage { ApplicationProperties = { ["key"] = null! } });
        Assert.Equal([new("key", null!)], (await queue.Receiver.ReceiveOne()).ApplicationProperties);
    }

    public static TheoryData<object> Values() =>
        ["text", 42, new[] { 1L, 2L }, new Dictionary<string, object> { ["key"] = "value" }];

    [Theory]
    [MemberData(nameof(Values), DisableDiscoveryEnumeration = true)]
    public async Task ABodyThatIsAValueArrivesAsThatValue(object value)
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage(new AmqpAnnotatedMessage(AmqpMessageBody.FromValue(value))));
        var body = (await queue.Receiver.ReceiveOne()).GetRawAmqpMessage().Body;
        Assert.True(body.TryGetValue(out var received));
        Assert.Equal(value, received);
    }

    [Fact]
    public async Task ABodyOfSequencesArrivesAsThoseSequences()
    {
        await using var queue = await Queue.Create();
        IList<object>[] sequences = [["a", 1], ["b", 2L]];
        await queue.Send(new ServiceBusMessage(new AmqpAnnotatedMessage(AmqpMessageBody.FromSequence(sequences))));
        var body = (await queue.Receiver.ReceiveOne()).GetRawAmqpMessage().Body;
        Assert.True(body.TryGetSequence(out var received));
        Assert.Equal(sequences, received);
    }

    [Fact]
    public async Task ABodyOfSeveralDataSectionsArrivesInSections()
    {
        await using var queue = await Queue.Create();
        ReadOnlyMemory<byte>[] sections = [new byte[] { 1, 2 }, new byte[] { 3 }];
        await queue.Send(new ServiceBusMessage(new AmqpAnnotatedMessage(AmqpMessageBody.FromData(sections))));
        var body = (await queue.Receiver.ReceiveOne()).GetRawAmqpMessage().Body;
        Assert.True(body.TryGetData(out var received));
        Assert.Equal(sections.Select(section => section.ToArray()), received!.Select(section => section.ToArray()));
    }
}
