using Amqp;
using Amqp.Framing;
using Amqp.Serialization;
using Amqp.Types;

namespace Railbus.Interop;

/// <summary>
/// AMQP without the SDK, by AMQPNetLite and SASL PLAIN: what the SDK does not send. It sends whatever size it is asked
/// to, and sections in any order.
/// </summary>
public class PlainAmqp
{
    private const int Limit = 1_048_576;

    /// <summary>Bytes of a section of data besides the data.</summary>
    private const int Overhead = 8;

    /// <summary>A connection of the root key.</summary>
    private static Task<Connection> Connect()
    {
        var authority = Broker.OfTheRun.Authority.Split(':');
        var (host, port) = (authority[0], int.Parse(authority[1]));
        var key = ServiceBusConnectionStringProperties.Parse(Broker.OfTheRun.ConnectionString);
        return Connection.Factory.CreateAsync(
            new Address(host, port, key.SharedAccessKeyName, key.SharedAccessKey, "/", "amqp"));
    }

    private static async Task Send(string queue, Func<SenderLink, Task> send)
    {
        var connection = await Connect();
        var sender = new SenderLink(new Session(connection), "sender", queue);
        await send(sender);
        await sender.CloseAsync();
        await connection.CloseAsync();
    }

    [Theory]
    [InlineData(1)]
    [InlineData(300_000)]
    public async Task AMessageThatIsTooLargeIsRejectedAndTheLinkStays(int excess)
    {
        await using var queue = await Queue.Create();
        await Send(queue.Name, async sender =>
        {
            var refused = await Assert.ThrowsAsync<AmqpException>(() => sender.SendAsync(OfSize(Limit + excess)));
            Assert.Equal("amqp:link:message-size-exceeded", refused.Error.Condition.ToString());
            await sender.SendAsync(OfSize(Limit));
        });
        var received = await queue.Receiver.Take();
        Assert.Equal(Limit - Overhead, received.Body.ToMemory().Length);
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>A message that is encoded in this many bytes.</summary>
    private static Message OfSize(int size)
    {
        var message = new Message { BodySection = new Data { Binary = new byte[size - Overhead] } };
        Assert.Equal(size, message.Encode().Length);
        return message;
    }

    [Fact]
    public async Task AMessageThatIsTooLargeAndSentSettledEndsTheLink()
    {
        await using var queue = await Queue.Create();
        var connection = await Connect();
        var settled = new Attach
        {
            Source = new Source(),
            Target = new Target { Address = queue.Name },
            SndSettleMode = SenderSettleMode.Settled,
        };
        var sender = new SenderLink(new Session(connection), "sender", settled, null);
        var ended = new TaskCompletionSource<Error>();
        sender.Closed += (_, error) => ended.SetResult(error);
        sender.Send(OfSize(Limit + 1), null, null, null);
        var error = await ended.Task.WaitAsync(Receivers.Patience);
        Assert.Equal("amqp:link:message-size-exceeded", error.Condition.ToString());
        Assert.Empty(await queue.Bodies());
        await connection.CloseAsync();
    }

    [Fact]
    public async Task SectionsInAnotherOrderArePutRight()
    {
        await using var queue = await Queue.Create();
        await Send(queue.Name, sender => sender.SendAsync(new Message
        {
            BodySection = new AmqpValue<BodyBefore>(new("body",
                new ApplicationProperties { ["key"] = "value" },
                new Properties { MessageId = "id", Subject = "subject" },
                new MessageAnnotations { [new Symbol("x-of-the-message")] = "m" },
                new DeliveryAnnotations { [new Symbol("x-of-the-delivery")] = "d" },
                new Header { Ttl = 3_600_000 })),
        }));
        var received = await queue.Receiver.ReceiveOne();
        var raw = received.GetRawAmqpMessage();
        Assert.True(raw.Body.TryGetValue(out var body));
        Assert.Equal(("body", "id", "subject", "value"),
            (body, received.MessageId, received.Subject, received.ApplicationProperties["key"]));
        Assert.Equal("m", raw.MessageAnnotations["x-of-the-message"]);
        Assert.Equal("d", raw.DeliveryAnnotations["x-of-the-delivery"]);
        Assert.Equal(TimeSpan.FromHours(1), received.TimeToLive);
    }

    [Fact]
    public async Task AMessageWithoutABodyIsShownWithAnEmptyOne()
    {
        await using var queue = await Queue.Create();
        var sent = new Message { ApplicationProperties = new() { ["kind"] = "signal" } };
        Assert.Null(sent.BodySection);
        await Send(queue.Name, sender => sender.SendAsync(sent));
        var peeked = await queue.Receiver.PeekMessageAsync();
        var received = await queue.Receiver.ReceiveOne();
        await queue.Receiver.DeferMessageAsync(received);
        var deferred = await queue.Receiver.ReceiveDeferredMessageAsync(received.SequenceNumber);
        foreach (var one in new[] { peeked, received, deferred })
        {
            Assert.Empty(one.Body.ToArray());
            Assert.Equal("signal", one.ApplicationProperties["kind"]);
        }
        await queue.Receiver.CompleteMessageAsync(deferred);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ASectionThatComesTwiceIsRefused()
    {
        await using var queue = await Queue.Create();
        await Send(queue.Name, async sender =>
        {
            var twice = new Message
            {
                Properties = new() { MessageId = "one" },
                BodySection = new AmqpValue<BodyBefore>(
                    new("body", new Properties { MessageId = "two" })),
            };
            var refused = await Assert.ThrowsAsync<AmqpException>(() => sender.SendAsync(twice));
            Assert.Equal("amqp:decode-error", refused.Error.Condition.ToString());
        });
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>The value of a body section, and other sections written behind it.</summary>
    private sealed class BodyBefore(string value, params RestrictedDescribed[] sections) : IAmqpSerializable
    {
        public int EncodeSize => 0;

        public void Encode(ByteBuffer buffer)
        {
            Encoder.WriteString(buffer, value, true);
            foreach (var section in sections)
            {
                section.Encode(buffer);
            }
        }

        public void Decode(ByteBuffer buffer) => throw new NotSupportedException();
    }

    [Fact]
    public async Task ALinkThatTheBrokerSendsOnStatesNoLimitOfItsOwn()
    {
        await using var queue = await Queue.Create();
        var connection = await Connect();
        var session = new Session(connection);
        var toBroker = new TaskCompletionSource<Attach>();
        var fromBroker = new TaskCompletionSource<Attach>();
        var sending = new Attach { Source = new Source(), Target = new Target { Address = queue.Name } };
        var receiving = new Attach { Source = new Source { Address = queue.Name }, Target = new Target() };
        _ = new SenderLink(session, "sender", sending, (_, attach) => toBroker.SetResult(attach));
        _ = new ReceiverLink(session, "receiver", receiving, (_, attach) => fromBroker.SetResult(attach));
        Assert.Equal((ulong)Limit, (await toBroker.Task.WaitAsync(Receivers.Patience)).MaxMessageSize);
        // What this client shows for a field that is absent.
        Assert.Equal(ulong.MaxValue, (await fromBroker.Task.WaitAsync(Receivers.Patience)).MaxMessageSize);
        await connection.CloseAsync();
    }
}
