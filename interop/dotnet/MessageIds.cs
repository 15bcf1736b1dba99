using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Message ids: one that the sender gave is kept, else the broker gives one, and it stays the same.</summary>
public class MessageIds
{
    private const string Assigned = "^[0-9a-fA-F]{32}$";

    [Fact]
    public async Task AMessageWithoutAnIdGetsOneAtIntake()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        Assert.Matches(Assigned, (await queue.Receiver.ReceiveOne()).MessageId);
    }

    [Fact]
    public async Task EachMessageGetsAnIdOfItsOwn()
    {
        await using var queue = await Queue.Create();
        await queue.Send("one");
        await queue.Send(new("two"), new("three"));
        var ids = (await queue.Receiver.ReceiveMany(3)).Select(message => message.MessageId).ToList();
        Assert.All(ids, id => Assert.Matches(Assigned, id));
        Assert.Equal(3, ids.Distinct().Count());
    }

    [Fact]
    public async Task AGivenIdIsKept()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage { MessageId = "given" });
        Assert.Equal("given", (await queue.Receiver.ReceiveOne()).MessageId);
    }

    [Fact]
    public async Task TheIdIsTheSameInPeeksAndAtEveryDelivery()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var id = (await queue.Receiver.PeekMessageAsync()).MessageId;
        var first = await queue.Receiver.ReceiveOne();
        await queue.Receiver.AbandonMessageAsync(first);
        var second = await queue.Receiver.DeferAndReceive();
        await queue.Receiver.DeadLetterMessageAsync(second);
        var dead = await queue.DeadLetters.ReceiveOne();
        Assert.Matches(Assigned, id);
        Assert.Equal([id, id, id], new[] { first, second, dead }.Select(message => message.MessageId));
    }

    [Fact]
    public async Task CopiesOfASubscriptionHaveTheIdOfTheMessage()
    {
        await using var topic = await Topic.Create();
        var (first, second) = (await topic.Subscribe("first"), await topic.Subscribe("second"));
        await topic.Send(new ServiceBusMessage("body"));
        var id = (await first.ReceiveOne()).MessageId;
        Assert.Matches(Assigned, id);
        Assert.Equal(id, (await second.ReceiveOne()).MessageId);
    }

    [Fact]
    public async Task RulesSeeTheId()
    {
        await using var topic = await Topic.Create();
        var receiver = await topic.Subscribe("some", new SqlRuleFilter("sys.MessageId IS NOT NULL"),
            new SqlRuleAction("SET id = sys.MessageId"));
        await topic.Send(new ServiceBusMessage("body"));
        var received = await receiver.ReceiveOne();
        Assert.Equal(received.MessageId, received.ApplicationProperties["id"]);
    }

    [Fact]
    public async Task AForwardedMessageKeepsItsId()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options => options.ForwardTo = target.Name);
        await using var topic = await Topic.Create();
        await topic.Subscribe("forwarding", configure: options => options.ForwardTo = source.Name);
        var copy = await topic.Subscribe("all");
        await topic.Send(new ServiceBusMessage("body"));
        var id = (await copy.ReceiveOne()).MessageId;
        Assert.Matches(Assigned, id);
        Assert.Equal(id, (await target.Receiver.ReceiveOne()).MessageId);
    }

    [Fact]
    public async Task AForwardedDeadLetterKeepsItsId()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options => options.ForwardDeadLetteredMessagesTo = target.Name);
        await source.Send("body");
        var received = await source.Receiver.ReceiveOne();
        await source.Receiver.DeadLetterMessageAsync(received);
        Assert.Matches(Assigned, received.MessageId);
        Assert.Equal(received.MessageId, (await target.Receiver.ReceiveOne()).MessageId);
    }

    [Fact]
    public async Task AScheduledMessageGetsItsIdWhenItIsScheduled()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        var due = DateTimeOffset.UtcNow.AddHours(1);
        await queue.Sender.ScheduleMessageAsync(new("by call"), due);
        await queue.Send(new ServiceBusMessage("by property") { ScheduledEnqueueTime = due });
        var scheduled = await queue.Receiver.PeekMessagesAsync(10);
        await broker.Advance("PT1H1S");
        var received = await queue.Receiver.ReceiveMany(2);
        Assert.All(scheduled, message => Assert.Matches(Assigned, message.MessageId));
        Assert.Equal(scheduled.Select(message => (message.Body.ToString(), message.MessageId)).Order(),
            received.Select(message => (message.Body.ToString(), message.MessageId)).Order());
    }

    [Fact]
    public async Task MessagesWithoutAnIdAreNoDuplicates()
    {
        await using var queue = await Queue.Create(options => options.RequiresDuplicateDetection = true);
        await queue.Send("body");
        await queue.Send("body");
        var ids = (await queue.Receiver.ReceiveMany(2)).Select(message => message.MessageId).ToList();
        Assert.All(ids, id => Assert.Matches(Assigned, id));
        Assert.Distinct(ids);
    }
}
