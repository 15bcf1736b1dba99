namespace Railbus.Interop;

/// <summary>Receiving: in either mode, ahead of need, by several at once, and looking without taking.</summary>
public class Receiving
{
    [Fact]
    public async Task WhatIsReceivedAndDeletedIsGone()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        Assert.Equal("body", (await queue.ReceiveAndDelete().ReceiveOne()).Body.ToString());
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AHeldMessageIsHiddenUntilItIsCompleted()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var held = await queue.Receiver.ReceiveOne();
        await using var other = queue.Client.CreateReceiver(queue.Name);
        await other.AssertNothingComes();
        await queue.Receiver.CompleteMessageAsync(held);
        await other.AssertNothingComes();
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task SeveralMessagesAreReceivedAtOnce()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("one"), new("two"), new("three"));
        var received = new List<ServiceBusReceivedMessage>();
        for (var calls = 0; calls < 3 && received.Count < 3; calls++)
        {
            received.AddRange(await queue.Receiver.ReceiveMessagesAsync(10));
        }
        Assert.Equal(["one", "two", "three"], received.Bodies());
    }

    [Fact]
    public async Task NothingComesFromAnEmptyQueue()
    {
        await using var queue = await Queue.Create();
        await queue.Receiver.AssertNothingComes();
    }

    [Fact]
    public async Task APeekOfAnEmptyQueueIsEmpty()
    {
        await using var queue = await Queue.Create();
        Assert.Empty(await queue.Receiver.PeekMessagesAsync(10));
        Assert.Null(await queue.Receiver.PeekMessageAsync());
    }

    [Fact]
    public async Task AWaitingReceiverIsGivenWhatIsSentLater()
    {
        await using var queue = await Queue.Create();
        var waiting = queue.Receiver.ReceiveOne();
        await queue.Send("later");
        Assert.Equal("later", (await waiting).Body.ToString());
    }

    private static ServiceBusReceiver Prefetching(Queue queue) =>
        queue.Client.CreateReceiver(queue.Name, new ServiceBusReceiverOptions { PrefetchCount = 10 });

    [Fact]
    public async Task PrefetchedMessagesAreThoseOfTheirReceiver()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("one"), new("two"), new("three"));
        await using var ahead = Prefetching(queue);
        var first = await ahead.ReceiveOne();
        await queue.Receiver.AssertNothingComes();
        var others = await ahead.ReceiveMany(2);
        Assert.Equal(["one", "two", "three"], others.Prepend(first).Bodies());
    }

    [Fact]
    public async Task APrefetchingReceiverThatClosesGivesBackWhatItHasNotHandedOut()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("one"), new("two"));
        await using (var ahead = Prefetching(queue))
        {
            await ahead.Take();
        }
        var received = await queue.Receiver.ReceiveOne();
        Assert.Equal(("two", 1), (received.Body.ToString(), received.DeliveryCount));
    }

    [Fact]
    public async Task APrefetchedMessageIsLeftToItsReceiverUntilItsLockEnds()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromMinutes(5), broker);
        await queue.Send(new("one"), new("two"));
        await using var ahead = queue.Client.CreateReceiver(queue.Name,
            new ServiceBusReceiverOptions { PrefetchCount = 2 });
        await ahead.Take();
        await broker.Advance("PT4M59S");
        await queue.Receiver.AssertNothingComes();
        await broker.Advance("PT1S");
        // Whichever link it comes over, it is the second time.
        var late = await ahead.ReceiveOne();
        Assert.Equal(("two", 1), (late.Body.ToString(), late.DeliveryCount));
        await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost, () => ahead.CompleteMessageAsync(late));
        await ahead.CloseAsync();
        var again = await queue.Receiver.ReceiveOne();
        Assert.Equal("two", again.Body.ToString());
        Assert.True(again.DeliveryCount > 1);
    }

    [Fact]
    public async Task CompetingReceiversGetEachMessageOnce()
    {
        await using var queue = await Queue.Create();
        var sent = Enumerable.Range(0, 30).Select(number => number.ToString()).ToArray();
        await queue.Send([.. sent.Select(body => new ServiceBusMessage(body))]);
        var receivers = Enumerable.Range(0, 3).Select(_ => queue.Client.CreateReceiver(queue.Name));
        var received = await Task.WhenAll(receivers.Select(receiver => receiver.ReceiveMany(10)));
        Assert.Equal(sent.Order(), received.SelectMany(one => one).Bodies().Order());
    }

    [Fact]
    public async Task PeekedMessagesComeInOrderAndStay()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("one"), new("two"), new("three"));
        Assert.Equal("one", (await queue.Receiver.PeekMessageAsync()).Body.ToString());
        Assert.Equal(["two", "three"], (await queue.Receiver.PeekMessagesAsync(10)).Bodies());
        Assert.Equal(["two", "three"], (await queue.Receiver.PeekMessagesAsync(10, fromSequenceNumber: 2)).Bodies());
        Assert.Equal(1, (await queue.Receiver.ReceiveOne()).DeliveryCount);
    }

    [Fact]
    public async Task APeekShowsTheStateOfEachMessage()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("deferred"), new("locked"), new("active"));
        await queue.Receiver.DeferMessageAsync(await queue.Receiver.ReceiveOne());
        await queue.Receiver.ReceiveOne();
        await queue.Sender.ScheduleMessageAsync(new("scheduled"), DateTimeOffset.UtcNow.AddHours(1));
        var peeked = await queue.Receiver.PeekMessagesAsync(10);
        Assert.Equal(
            [
                ("deferred", ServiceBusMessageState.Deferred), ("locked", ServiceBusMessageState.Active),
                ("active", ServiceBusMessageState.Active), ("scheduled", ServiceBusMessageState.Scheduled),
            ],
            peeked.Select(message => (message.Body.ToString(), message.State)));
    }
}
