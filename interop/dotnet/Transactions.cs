using System.Transactions;

namespace Railbus.Interop;

/// <summary>Transactions: all that happens in a scope, or nothing of it.</summary>
public class Transactions
{
    private static TransactionScope NewScope() => new(TransactionScopeAsyncFlowOption.Enabled);

    [Fact]
    public async Task ACommitSendsAndCompletes()
    {
        await using var queue = await Queue.Create();
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        using (var scope = NewScope())
        {
            await queue.Receiver.CompleteMessageAsync(request);
            await queue.Sender.SendMessageAsync(new("reply"));
            scope.Complete();
        }
        Assert.Equal(["reply"], await queue.Bodies());
    }

    [Fact]
    public async Task ARollbackDropsWhatWasSentAndKeepsTheLock()
    {
        await using var queue = await Queue.Create();
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        using (NewScope())
        {
            await queue.Receiver.CompleteMessageAsync(request);
            await queue.Sender.SendMessageAsync(new("reply"));
        }
        Assert.Equal(["request"], await queue.Bodies());
        await queue.Receiver.CompleteMessageAsync(request);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task MessagesAreAbandonedDeferredAndDeadLetteredTogether()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("abandoned"), new("deferred"), new("dead"));
        var received = await queue.Receiver.ReceiveMany(3);
        using (var scope = NewScope())
        {
            await queue.Receiver.AbandonMessageAsync(received[0]);
            await queue.Receiver.DeferMessageAsync(received[1]);
            await queue.Receiver.DeadLetterMessageAsync(received[2], "reason");
            scope.Complete();
        }
        Assert.Equal("reason", (await queue.DeadLetters.ReceiveOne()).DeadLetterReason);
        Assert.Equal(["abandoned", "deferred"], await queue.Bodies());
        Assert.Equal("abandoned", (await queue.Receiver.Take()).Body.ToString());
        await queue.Receiver.CompleteMessageAsync(
            await queue.Receiver.ReceiveDeferredMessageAsync(received[1].SequenceNumber));
    }

    [Fact]
    public async Task ADeferredMessageIsCompletedInATransaction()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var deferred = await queue.Receiver.DeferAndReceive();
        using (var scope = NewScope())
        {
            await queue.Receiver.CompleteMessageAsync(deferred);
            scope.Complete();
        }
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AScheduledMessageIsThereOnceItsTransactionIsCommitted()
    {
        await using var queue = await Queue.Create();
        using (NewScope())
        {
            await queue.Sender.ScheduleMessageAsync(new("rolled back"), DateTimeOffset.UtcNow.AddDays(1));
        }
        using (var scope = NewScope())
        {
            await queue.Sender.ScheduleMessageAsync(new("committed"), DateTimeOffset.UtcNow.AddDays(1));
            scope.Complete();
        }
        Assert.Equal(["committed"], await queue.Bodies());
    }

    [Fact]
    public async Task AStateOfASessionIsSetWithTheCompletionOfItsMessage()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        var received = await receiver.ReceiveOne();
        using (NewScope())
        {
            await receiver.SetSessionStateAsync(new("rolled back"));
        }
        Assert.Null(await receiver.GetSessionStateAsync());
        using (var scope = NewScope())
        {
            await receiver.SetSessionStateAsync(new("committed"));
            await receiver.CompleteMessageAsync(received);
            scope.Complete();
        }
        Assert.Equal("committed", (await receiver.GetSessionStateAsync()).ToString());
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ACrossEntityTransactionMovesAMessageToAnotherQueue()
    {
        await using var from = await Queue.Create(client: options => options.EnableCrossEntityTransactions = true);
        await using var to = await Queue.Create();
        await from.Send("step one");
        var received = await from.Receiver.ReceiveOne();
        var sender = from.Client.CreateSender(to.Name);
        using (NewScope())
        {
            await from.Receiver.CompleteMessageAsync(received);
            await sender.SendMessageAsync(new("rolled back"));
        }
        using (var scope = NewScope())
        {
            await from.Receiver.CompleteMessageAsync(received);
            await sender.SendMessageAsync(new("step two"));
            scope.Complete();
        }
        Assert.Empty(await from.Bodies());
        Assert.Equal(["step two"], await to.Bodies());
    }

    [Fact]
    public async Task ALockThatRanOutTakesTheWholeTransactionBack()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        var scope = NewScope();
        await queue.Receiver.CompleteMessageAsync(request);
        await queue.Sender.SendMessageAsync(new("reply"));
        await broker.Advance("PT1M");
        scope.Complete();
        Assert.ThrowsAny<Exception>(scope.Dispose);
        Assert.Equal(["request"], await queue.Bodies());
    }
}
