using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Sizes: what an entity takes reaches its receivers, although a delivery is larger than it.</summary>
public class Sizes
{
    private const string Standard = "";
    private const string Premium = "sku = \"premium\"";

    [Theory]
    [InlineData(Standard, 262_144)]
    [InlineData(Premium, 1_048_576)]
    public async Task ABatchMayBeAsLargeAsTheDefaultLimit(string settings, long limit)
    {
        await using var broker = await OwnBroker.WithSettings(settings);
        await using var queue = await Queue.Create(broker: broker);
        using var batch = await queue.Sender.CreateMessageBatchAsync();
        Assert.Equal(limit, batch.MaxSizeInBytes);
        QueueProperties properties = await broker.Administration.GetQueueAsync(queue.Name);
        Assert.Equal(limit >> 10, properties.MaxMessageSizeInKilobytes);
        Assert.False(batch.TryAddMessage(new(new byte[limit])));
        Assert.True(batch.TryAddMessage(new(new byte[limit - 300])));
        await queue.Sender.SendMessagesAsync(batch);
        Assert.Equal(limit - 300, (await queue.Receiver.Take()).Body.ToMemory().Length);
    }

    [Theory]
    [InlineData(Standard, 262_144)]
    [InlineData(Premium, 1_048_576)]
    public async Task AMessageOfTheLimitReachesTheReceiversOfAQueue(string settings, int limit)
    {
        await using var broker = await OwnBroker.WithSettings(settings);
        await using var queue = await Queue.Create(broker: broker);
        var size = await SendLargest(queue.Sender, limit);
        var received = await queue.Receiver.ReceiveOne();
        await queue.Receiver.DeferMessageAsync(received);
        var deferred = await queue.Receiver.ReceiveDeferredMessageAsync(received.SequenceNumber);
        await queue.Receiver.DeadLetterMessageAsync(deferred, "reason", "description");
        var dead = await queue.DeadLetters.Take();
        Assert.All([received, deferred, dead], message => Assert.Equal(size, message.Body.ToMemory().Length));
    }

    [Theory]
    [InlineData(Standard, 262_144)]
    [InlineData(Premium, 1_048_576)]
    public async Task AMessageOfTheLimitReachesASubscription(string settings, int limit)
    {
        await using var broker = await OwnBroker.WithSettings(settings);
        await using var topic = await Topic.Create(broker: broker);
        var subscription = await topic.Subscribe("all");
        var size = await SendLargest(topic.Sender, limit);
        Assert.Equal(size, (await subscription.PeekMessageAsync()).Body.ToMemory().Length);
        Assert.Equal(size, (await subscription.Take()).Body.ToMemory().Length);
    }

    [Fact]
    public async Task AMessageOfTheLimitReachesTheHolderOfItsSession()
    {
        await using var broker = await OwnBroker.WithSettings(Standard);
        await using var queue = await Queue.CreateWithSessions(broker);
        var size = await SendLargest(queue.Sender, 262_144, "a");
        await using var receiver = await queue.Accept("a");
        Assert.Equal(size, (await receiver.Take()).Body.ToMemory().Length);
    }

    /// <summary>Sends a message that is at most 100 bytes below the limit, and returns the size of its body.</summary>
    private static async Task<int> SendLargest(ServiceBusSender sender, int limit, string? session = null)
    {
        for (var size = limit; size > limit - 100; size--)
        {
            var message = new ServiceBusMessage(new byte[size]) { SessionId = session };
            try
            {
                await sender.SendMessageAsync(message);
                return size;
            }
            catch (ServiceBusException tooLarge) when (tooLarge.Reason == ServiceBusFailureReason.MessageSizeExceeded)
            {
                // The SDK refuses it without asking the broker.
            }
        }
        throw new InvalidOperationException($"no message of nearly {limit} bytes was taken");
    }

    [Fact]
    public async Task ALargerMessageGoesThroughAnEntityThatTakesIt()
    {
        await using var topic = await Topic.Create(options => options.MaxMessageSizeInKilobytes = 3000);
        var subscription = await topic.Subscribe("all");
        var size = await SendLargest(topic.Sender, 3000 << 10);
        Assert.Equal(size, (await subscription.Take()).Body.ToMemory().Length);
    }

    [Fact]
    public async Task DeferredMessagesThatAreTogetherAboveTheLimitComeInOneAnswer()
    {
        await using var broker = await OwnBroker.WithSettings(Standard);
        await using var queue = await Queue.Create(broker: broker);
        var numbers = new List<long>();
        for (var sent = 0; sent < 16; sent++)
        {
            await queue.Send(new ServiceBusMessage(new byte[60 << 10]));
            var received = await queue.Receiver.ReceiveOne();
            await queue.Receiver.DeferMessageAsync(received);
            numbers.Add(received.SequenceNumber);
        }
        var deferred = await queue.Receiver.ReceiveDeferredMessagesAsync(numbers);
        Assert.Equal(numbers, deferred.Select(message => message.SequenceNumber));
        Assert.All(deferred, message => Assert.Equal(60 << 10, message.Body.ToMemory().Length));
    }
}
