namespace Railbus.Interop;

/// <summary>Scheduling: by the sender's call and by a property of the message.</summary>
public class Scheduling
{
    private static DateTimeOffset Tomorrow => DateTimeOffset.UtcNow.AddDays(1);

    [Fact]
    public async Task AScheduledMessageIsSeenButDoesNotCome()
    {
        await using var queue = await Queue.Create();
        var number = await queue.Sender.ScheduleMessageAsync(new("body"), Tomorrow);
        var peeked = await queue.Receiver.PeekMessageAsync();
        Assert.Equal((number, ServiceBusMessageState.Scheduled), (peeked.SequenceNumber, peeked.State));
        await queue.Receiver.AssertNothingComes();
    }

    [Fact]
    public async Task AScheduledMessageComesAtItsTime()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        var due = Tomorrow;
        await queue.Sender.ScheduleMessagesAsync([new("one"), new("two")], due);
        await broker.Advance("P1DT1S");
        var received = await queue.Receiver.ReceiveMany(2);
        Assert.Equal(["one", "two"], received.Bodies());
        Assert.All(received, message => Assert.Equal(due, message.EnqueuedTime, TimeSpan.FromMinutes(1)));
    }

    [Fact]
    public async Task AMessageComesAtTheTimeThatItsPropertySays()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        var due = Tomorrow;
        await queue.Send(new ServiceBusMessage("body") { ScheduledEnqueueTime = due });
        Assert.Equal(ServiceBusMessageState.Scheduled, (await queue.Receiver.PeekMessageAsync()).State);
        await broker.Advance("P1DT1S");
        var received = await queue.Receiver.ReceiveOne();
        Assert.Equal(due, received.ScheduledEnqueueTime, TimeSpan.FromMilliseconds(1));
    }

    [Fact]
    public async Task AMessageThatIsScheduledForThePastComesAtOnce()
    {
        await using var queue = await Queue.Create();
        await queue.Sender.ScheduleMessageAsync(new("body"), DateTimeOffset.UtcNow.AddMinutes(-1));
        Assert.Equal("body", (await queue.Receiver.Take()).Body.ToString());
    }

    [Fact]
    public async Task ACancelledMessageIsGone()
    {
        await using var queue = await Queue.Create();
        var numbers = await queue.Sender.ScheduleMessagesAsync([new("one"), new("two"), new("three")], Tomorrow);
        await queue.Sender.CancelScheduledMessageAsync(numbers[0]);
        await queue.Sender.CancelScheduledMessagesAsync([numbers[2]]);
        Assert.Equal(["two"], await queue.Bodies());
    }

    [Fact]
    public async Task AMessageIsNotCancelledTwice()
    {
        await using var queue = await Queue.Create();
        var number = await queue.Sender.ScheduleMessageAsync(new("body"), Tomorrow);
        await queue.Sender.CancelScheduledMessageAsync(number);
        await Receivers.AssertFails(ServiceBusFailureReason.MessageNotFound,
            () => queue.Sender.CancelScheduledMessageAsync(number));
    }

    [Fact]
    public async Task WhatIsNotScheduledCanNotBeCancelled()
    {
        await using var queue = await Queue.Create();
        await Receivers.AssertFails(ServiceBusFailureReason.MessageNotFound,
            () => queue.Sender.CancelScheduledMessageAsync(7));
    }

    [Fact]
    public async Task WhatIsScheduledAtATopicComesToItsSubscriptions()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var topic = await Topic.Create(broker: broker);
        var subscription = await topic.Subscribe("all");
        await topic.Sender.ScheduleMessageAsync(new("body"), Tomorrow);
        Assert.Empty(await subscription.PeekMessagesAsync(10));
        await broker.Advance("P1DT1S");
        Assert.Equal("body", (await subscription.Take()).Body.ToString());
    }
}
