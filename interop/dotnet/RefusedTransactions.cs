using System.Transactions;

namespace Railbus.Interop;

/// <summary>
/// Transactions that do not end as their program meant: which operations may not be part of one, commits that fail,
/// and what has become of the messages then.
/// </summary>
public class RefusedTransactions
{
    private const string SeveralEntities =
        "Local transactions cannot span multiple top-level entities such as queue or topic.";

    private static TransactionScope NewScope() => new(TransactionScopeAsyncFlowOption.Enabled);

    private static void CrossEntity(ServiceBusClientOptions options) => options.EnableCrossEntityTransactions = true;

    [Fact]
    public async Task AMessageIsAbandonedAfterARollbackAndComesAgain()
    {
        await using var queue = await Queue.Create();
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        using (NewScope())
        {
            await queue.Receiver.CompleteMessageAsync(request);
        }
        await queue.Receiver.AbandonMessageAsync(request);
        Assert.Equal(2, (await queue.Receiver.Take()).DeliveryCount);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task EverySettlementIsTakenBackByARollback()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("completed"), new("abandoned"), new("deferred"), new("dead"));
        var received = await queue.Receiver.ReceiveMany(4);
        using (NewScope())
        {
            await queue.Receiver.CompleteMessageAsync(received[0]);
            await queue.Receiver.AbandonMessageAsync(received[1]);
            await queue.Receiver.DeferMessageAsync(received[2]);
            await queue.Receiver.DeadLetterMessageAsync(received[3]);
        }
        Assert.Null(await queue.DeadLetters.PeekMessageAsync());
        var peeked = await queue.Client.CreateReceiver(queue.Name).PeekMessagesAsync(10);
        Assert.Equal(["completed", "abandoned", "deferred", "dead"], peeked.Bodies());
        Assert.All(peeked, message => Assert.Equal((ServiceBusMessageState.Active, 0),
            (message.State, message.DeliveryCount)));
        foreach (var message in received)
        {
            await queue.Receiver.CompleteMessageAsync(message);
        }
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AMessageOfASubscriptionMovesToAQueueAndATopicOrStays()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("steps");
        await using var events = await Topic.Create();
        var told = await events.Subscribe("all");
        await using var queue = await Queue.Create();
        await topic.Send(new ServiceBusMessage("step one"));
        await using var client = Broker.OfTheRun.NewClient(CrossEntity);
        var receiver = client.CreateReceiver(topic.Name, "steps");
        var received = await receiver.ReceiveOne();
        var (toQueue, toTopic) = (client.CreateSender(queue.Name), client.CreateSender(events.Name));
        foreach (var commits in new[] { false, true })
        {
            using var scope = NewScope();
            await receiver.CompleteMessageAsync(received);
            await toQueue.SendMessageAsync(new("step two"));
            await toTopic.SendMessageAsync(new("step one is done"));
            if (commits)
            {
                scope.Complete();
            }
        }
        Assert.Empty(await receiver.PeekMessagesAsync(10));
        Assert.Equal(["step two"], await queue.Bodies());
        Assert.Equal(["step one is done"], (await told.PeekMessagesAsync(10)).Bodies());
    }

    [Fact]
    public async Task AReceiverOfASecondEntityIsRefusedAcrossEntities()
    {
        await using var first = await Queue.Create(client: CrossEntity);
        await using var second = await Queue.Create();
        await first.Send("one");
        await second.Send("two");
        await first.Receiver.ReceiveOne();
        var refusal = await Assert.ThrowsAsync<InvalidOperationException>(
            () => first.Client.CreateReceiver(second.Name).ReceiveMessageAsync(Receivers.Patience));
        Assert.StartsWith(SeveralEntities, refusal.Message);
        Assert.Equal("two", (await second.Receiver.Take()).Body.ToString());
    }

    [Fact]
    public async Task ASecondEntityIsRefusedAndTheRestIsCommitted()
    {
        await using var first = await Queue.Create();
        await using var second = await Queue.Create();
        await first.Send("request");
        var request = await first.Receiver.ReceiveOne();
        var elsewhere = first.Client.CreateSender(second.Name);
        using (var scope = NewScope())
        {
            await first.Receiver.CompleteMessageAsync(request);
            await Assert.ThrowsAsync<InvalidOperationException>(() => elsewhere.SendMessageAsync(new("refused")));
            await first.Sender.SendMessageAsync(new("reply"));
            scope.Complete();
        }
        Assert.Equal(["reply"], await first.Bodies());
        Assert.Empty(await second.Bodies());
    }

    [Fact]
    public async Task ASecondPartitionKeyIsRefusedAndTheRestIsCommitted()
    {
        await using var queue = await Queue.Create(options => options.EnablePartitioning = true);
        using (var scope = NewScope())
        {
            await queue.Sender.SendMessageAsync(new("one") { PartitionKey = "a" });
            await Assert.ThrowsAsync<InvalidOperationException>(
                () => queue.Sender.SendMessageAsync(new("two") { PartitionKey = "b" }));
            await queue.Sender.SendMessageAsync(new("three") { PartitionKey = "a" });
            scope.Complete();
        }
        Assert.Equal(["one", "three"], await queue.Bodies());
    }

    [Theory]
    [InlineData("""{"refuse": "internal-error"}""")]
    [InlineData("""{"refuse": "server-busy"}""")]
    [InlineData("""{"detach": "detach-forced"}""")]
    public async Task ACommitThatFailsIsToldAndTakesEverythingBack(string effect)
    {
        await using var broker = await OwnBroker.WithSettings("");
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        await broker.Inject("commit", effect);
        var scope = NewScope();
        await queue.Receiver.CompleteMessageAsync(request);
        await queue.Sender.SendMessageAsync(new("reply"));
        scope.Complete();
        Assert.ThrowsAny<TransactionException>(scope.Dispose);
        Assert.Equal(["request"], await queue.Bodies());
        await queue.Receiver.CompleteMessageAsync(request);
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>The commit is refused for the clients that take any answer to a send for a success.</summary>
    [Fact]
    public async Task ATransactionWithASendThatWasRefusedIsTakenBack()
    {
        await using var broker = await OwnBroker.WithSettings("");
        await using var queue = await Queue.Create(broker: broker);
        await broker.Inject("send", """{"refuse": "quota-exceeded"}""");
        var scope = NewScope();
        await Receivers.AssertFails(ServiceBusFailureReason.QuotaExceeded,
            () => queue.Sender.SendMessageAsync(new("refused")));
        await queue.Sender.SendMessageAsync(new("sent"));
        scope.Complete();
        Assert.ThrowsAny<TransactionException>(scope.Dispose);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ATransactionThatTakesTooLongIsTakenBack()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromMinutes(5), broker);
        await queue.Send("request");
        var request = await queue.Receiver.ReceiveOne();
        var scope = NewScope();
        await queue.Receiver.CompleteMessageAsync(request);
        await queue.Sender.SendMessageAsync(new("reply"));
        await broker.Advance("PT2M1S");
        scope.Complete();
        Assert.ThrowsAny<TransactionException>(scope.Dispose);
        Assert.Equal(["request"], await queue.Bodies());
        await queue.Receiver.CompleteMessageAsync(request);
        Assert.Empty(await queue.Bodies());
    }
}
