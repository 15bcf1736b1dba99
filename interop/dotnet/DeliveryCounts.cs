namespace Railbus.Interop;

/// <summary>Delivery counts as this SDK shows them: one more than the deliveries that ended without removal.</summary>
public class DeliveryCounts
{
    [Fact]
    public async Task AnAbandonRaisesTheCount()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var first = await queue.Receiver.ReceiveOne();
        await queue.Receiver.AbandonMessageAsync(first);
        Assert.Equal((1, 2), (first.DeliveryCount, (await queue.Receiver.ReceiveOne()).DeliveryCount));
    }

    [Fact]
    public async Task ADeferRaisesTheCount()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var first = await queue.Receiver.ReceiveOne();
        await queue.Receiver.DeferMessageAsync(first);
        var second = await queue.Receiver.ReceiveDeferredMessageAsync(first.SequenceNumber);
        await queue.Receiver.DeferMessageAsync(second);
        var third = await queue.Receiver.ReceiveDeferredMessageAsync(first.SequenceNumber);
        await queue.Receiver.AbandonMessageAsync(third);
        var fourth = await queue.Receiver.ReceiveDeferredMessageAsync(first.SequenceNumber);
        Assert.Equal([1, 2, 3, 4], new[] { first, second, third, fourth }.Select(message => message.DeliveryCount));
    }

    [Fact]
    public async Task ADeferredMessageToDeleteHasTheRaisedCount()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var first = await queue.Receiver.ReceiveOne();
        await queue.Receiver.DeferMessageAsync(first);
        var second = await queue.ReceiveAndDelete().ReceiveDeferredMessageAsync(first.SequenceNumber);
        Assert.Equal(2, second.DeliveryCount);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task APeekShowsTheDeliveriesThatHaveEnded()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        Assert.Equal(0, (await queue.Receiver.PeekMessageAsync(1)).DeliveryCount);
        await queue.Receiver.DeferMessageAsync(await queue.Receiver.ReceiveOne());
        Assert.Equal(1, (await queue.Receiver.PeekMessageAsync(1)).DeliveryCount);
    }

    [Fact]
    public async Task DeadLetteringDoesNotRaiseTheCount()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("at once"), new("deferred"));
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne());
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.DeferAndReceive());
        var dead = await queue.DeadLetters.ReceiveMany(2);
        Assert.Equal([("at once", 1), ("deferred", 2)],
            dead.Select(message => (message.Body.ToString(), message.DeliveryCount)));
    }

    [Fact]
    public async Task ADeferNeverMovesAMessageToTheDeadLetters()
    {
        await using var queue = await Queue.Create(options => options.MaxDeliveryCount = 1);
        await queue.Send("body");
        var deferred = await queue.Receiver.DeferAndReceive();
        Assert.Null(await queue.DeadLetters.PeekMessageAsync());
        await queue.Receiver.AbandonMessageAsync(deferred);
        Assert.Equal("MaxDeliveryCountExceeded", (await queue.DeadLetters.ReceiveOne()).DeadLetterReason);
    }
}
