using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Forwarding: of messages, of dead letters, from subscriptions; and duplicates that never arrive.</summary>
public class Forwarding
{
    [Fact]
    public async Task AQueueForwardsItsMessages()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options => options.ForwardTo = target.Name);
        await source.Send("body");
        Assert.Equal("body", (await target.Receiver.Take()).Body.ToString());
        Assert.Empty(await source.Bodies());
    }

    [Fact]
    public async Task ASubscriptionForwardsItsCopies()
    {
        await using var target = await Queue.Create();
        await using var topic = await Topic.Create();
        await topic.Subscribe("forwarding", new CorrelationRuleFilter { Subject = "red" },
            configure: options => options.ForwardTo = target.Name);
        await topic.Send(new("blue") { Subject = "blue" }, new("red") { Subject = "red" });
        Assert.Equal("red", (await target.Receiver.Take()).Body.ToString());
        Assert.Empty(await target.Bodies());
    }

    [Fact]
    public async Task AForwardedDeadLetterNamesItsSource()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options =>
        {
            options.Name = options.Name.ToUpperInvariant();
            options.ForwardDeadLetteredMessagesTo = target.Name;
        });
        await source.Send("body");
        await source.Receiver.DeadLetterMessageAsync(await source.Receiver.ReceiveOne(), "reason", "description");
        var received = await target.Receiver.ReceiveOne();
        Assert.Equal(("reason", "description", source.Name.ToLowerInvariant()),
            (received.DeadLetterReason, received.DeadLetterErrorDescription, received.DeadLetterSource));
    }

    [Fact]
    public async Task AQueueThatForwardsHasNoReceivers()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options => options.ForwardTo = target.Name);
        await Assert.ThrowsAsync<InvalidOperationException>(source.Receiver.ReceiveOne);
    }

    [Fact]
    public async Task AMessageWhoseDestinationIsGoneIsAmongTheTransferDeadLetters()
    {
        await using var source = await Queue.Create();
        await using (var target = await Queue.Create())
        {
            QueueProperties properties = await Broker.OfTheRun.Administration.GetQueueAsync(source.Name);
            properties.ForwardTo = target.Name;
            await Broker.OfTheRun.Administration.UpdateQueueAsync(properties);
        }
        await source.Send("body");
        var receiver = source.Client.CreateReceiver(source.Name,
            new ServiceBusReceiverOptions { SubQueue = SubQueue.TransferDeadLetter });
        Assert.Equal("body", (await receiver.Take()).Body.ToString());
    }

    [Fact]
    public async Task ADuplicateIsAcceptedAndDroppedUntilItsTimeIsOver()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options =>
        {
            options.RequiresDuplicateDetection = true;
            options.DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(10);
        }, broker);
        await queue.Send(new ServiceBusMessage("first") { MessageId = "id" });
        await queue.Send(new ServiceBusMessage("duplicate") { MessageId = "id" });
        await broker.Advance("PT10M1S");
        await queue.Send(new ServiceBusMessage("later") { MessageId = "id" });
        Assert.Equal(["first", "later"], await queue.Bodies());
    }

    [Fact]
    public async Task ABatchIsCheckedMessageByMessage()
    {
        await using var queue = await Queue.Create(options => options.RequiresDuplicateDetection = true);
        await queue.Send(new ServiceBusMessage("first") { MessageId = "one" });
        using var batch = await queue.Sender.CreateMessageBatchAsync();
        foreach (var (body, id) in new[] { ("again", "one"), ("second", "two"), ("third", "two") })
        {
            Assert.True(batch.TryAddMessage(new ServiceBusMessage(body) { MessageId = id }));
        }
        await queue.Sender.SendMessagesAsync(batch);
        Assert.Equal(["first", "second"], await queue.Bodies());
    }
}
