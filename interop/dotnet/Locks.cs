namespace Railbus.Interop;

/// <summary>Locks of messages: renewed, lost, and what a late holder can still do.</summary>
public class Locks
{
    [Fact]
    public async Task ALockThatRanOutIsLostAndTheMessageComesAgain()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromMinutes(5), broker);
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        await broker.Advance("PT5M");
        await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost,
            () => queue.Receiver.CompleteMessageAsync(received));
        Assert.Equal(2, (await queue.Receiver.ReceiveOne()).DeliveryCount);
    }

    [Fact]
    public async Task ARenewedLockLastsFromItsRenewal()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromMinutes(5), broker);
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        var first = received.LockedUntil;
        await broker.Advance("PT4M");
        await queue.Receiver.RenewMessageLockAsync(received);
        Assert.InRange(received.LockedUntil, first, first.AddMinutes(5));
        await broker.Advance("PT4M");
        await queue.Receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task TwentyLocksAreRenewedAtTheSameTime()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send([.. Enumerable.Range(0, 20).Select(number => new ServiceBusMessage($"{number}"))]);
        var held = await queue.Receiver.ReceiveMany(20);
        for (var round = 0; round < 2; round++)
        {
            await broker.Advance("PT50S");
            await Task.WhenAll(held.Select(message => queue.Receiver.RenewMessageLockAsync(message)));
        }
        await Task.WhenAll(held.Select(message => queue.Receiver.CompleteMessageAsync(message)));
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ALateSettlementDoesNotTouchTheNextHolder()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send("body");
        var late = await queue.Receiver.ReceiveOne();
        await broker.Advance("PT1M");
        var next = queue.Client.CreateReceiver(queue.Name);
        var held = await next.ReceiveOne();
        Func<Task>[] settlements =
        [
            () => queue.Receiver.AbandonMessageAsync(late), () => queue.Receiver.DeadLetterMessageAsync(late),
            () => queue.Receiver.DeferMessageAsync(late), () => queue.Receiver.CompleteMessageAsync(late),
        ];
        foreach (var settle in settlements)
        {
            await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost, settle);
        }
        Assert.Equal(["body"], await queue.Bodies());
        await next.RenewMessageLockAsync(held);
        await next.CompleteMessageAsync(held);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ALockThatRanOutIsNotRenewed()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send("body");
        var late = await queue.Receiver.ReceiveOne();
        await broker.Advance("PT1M");
        await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost,
            () => queue.Receiver.RenewMessageLockAsync(late));
        Assert.Equal(2, (await queue.Receiver.Take()).DeliveryCount);
    }

    [Fact]
    public async Task ADeferredMessageIsRenewedAndSettledByItsToken()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send("body");
        var deferred = await queue.Receiver.DeferAndReceive();
        var first = deferred.LockedUntil;
        await broker.Advance("PT50S");
        await queue.Receiver.RenewMessageLockAsync(deferred);
        Assert.True(deferred.LockedUntil > first);
        await broker.Advance("PT50S");
        await queue.Receiver.CompleteMessageAsync(deferred);
        Assert.Empty(await queue.Bodies());
    }
}
