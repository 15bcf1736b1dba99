namespace Railbus.Interop;

/// <summary>Settling: complete, abandon, defer and dead-letter, and the lock that each of them needs.</summary>
public class Settling
{
    [Fact]
    public async Task ACompletedMessageIsGone()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        await queue.Receiver.Take();
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AnAbandonedMessageComesAgainWithTheChangedProperties()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage { ApplicationProperties = { ["kept"] = 1, ["changed"] = 1 } });
        await queue.Receiver.AbandonMessageAsync(await queue.Receiver.ReceiveOne(),
            new Dictionary<string, object> { ["changed"] = 2, ["added"] = "new" });
        var again = await queue.Receiver.ReceiveOne();
        Assert.Equal(2, again.DeliveryCount);
        Assert.Equal(new Dictionary<string, object> { ["kept"] = 1, ["changed"] = 2, ["added"] = "new" },
            again.ApplicationProperties);
    }

    [Fact]
    public async Task AMessageThatIsAbandonedTooOftenIsDeadLettered()
    {
        await using var queue = await Queue.Create(options => options.MaxDeliveryCount = 2);
        await queue.Send("body");
        await queue.Receiver.AbandonMessageAsync(await queue.Receiver.ReceiveOne());
        await queue.Receiver.AbandonMessageAsync(await queue.Receiver.ReceiveOne());
        var dead = await queue.DeadLetters.ReceiveOne();
        Assert.Equal("MaxDeliveryCountExceeded", dead.DeadLetterReason);
        Assert.Equal("Message could not be consumed after 2 delivery attempts.", dead.DeadLetterErrorDescription);
    }

    [Fact]
    public async Task ADeadLetterHasReasonDescriptionAndProperties()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne(),
            new Dictionary<string, object> { ["added"] = 1 }, "reason", "description");
        var dead = await queue.DeadLetters.Take();
        Assert.Equal(("body", "reason", "description"),
            (dead.Body.ToString(), dead.DeadLetterReason, dead.DeadLetterErrorDescription));
        Assert.Equal(1, dead.ApplicationProperties["added"]);
        Assert.Null(await queue.DeadLetters.PeekMessageAsync());
    }

    [Fact]
    public async Task ADeadLetterWithoutAReasonHasNone()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne(), deadLetterReason: null!);
        var dead = await queue.DeadLetters.ReceiveOne();
        Assert.Null(dead.DeadLetterReason);
        Assert.Null(dead.DeadLetterErrorDescription);
        Assert.Empty(dead.ApplicationProperties);
    }

    [Fact]
    public async Task AReasonThatIsNoTextIsKeptAsItIs()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var given = new Dictionary<string, object>
        {
            ["DeadLetterReason"] = 7,
            ["DeadLetterErrorDescription"] = TimeSpan.FromMinutes(1),
        };
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne(), given);
        Assert.Equal(given, (await queue.DeadLetters.ReceiveOne()).ApplicationProperties);
    }

    [Fact]
    public async Task ADeadLetterIsNotDeadLetteredAgain()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne());
        var dead = await queue.DeadLetters.ReceiveOne();
        await Assert.ThrowsAsync<InvalidOperationException>(() => queue.DeadLetters.DeadLetterMessageAsync(dead));
        await queue.DeadLetters.CompleteMessageAsync(dead);
    }

    [Fact]
    public async Task ADeferredMessageComesByItsNumberAlone()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        await queue.Receiver.DeferMessageAsync(received, new Dictionary<string, object> { ["added"] = 1 });
        await queue.Receiver.AssertNothingComes();
        var deferred = await queue.Receiver.ReceiveDeferredMessageAsync(received.SequenceNumber);
        Assert.Equal(("body", 1), (deferred.Body.ToString(), (int)deferred.ApplicationProperties["added"]));
        await queue.Receiver.CompleteMessageAsync(deferred);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AnAbandonedDeferredMessageStaysDeferred()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var deferred = await queue.Receiver.DeferAndReceive();
        await queue.Receiver.AbandonMessageAsync(deferred);
        Assert.Equal(ServiceBusMessageState.Deferred, (await queue.Receiver.PeekMessageAsync()).State);
    }

    [Fact]
    public async Task ADeferredMessageIsDeadLettered()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.DeferAndReceive(), "reason");
        Assert.Equal("reason", (await queue.DeadLetters.ReceiveOne()).DeadLetterReason);
    }

    [Fact]
    public async Task ANumberThatNoDeferredMessageHasIsNotFound()
    {
        await using var queue = await Queue.Create();
        await Receivers.AssertFails(ServiceBusFailureReason.MessageNotFound,
            () => queue.Receiver.ReceiveDeferredMessageAsync(7));
    }

    [Fact]
    public async Task ASecondSettlementIsALostLock()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.Receiver.Take();
        await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost,
            () => queue.Receiver.CompleteMessageAsync(received));
    }

    [Fact]
    public async Task ALockIsSettledByAnotherReceiverWhenItsOwnIsClosed()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var first = queue.Client.CreateReceiver(queue.Name);
        var received = await first.ReceiveOne();
        await first.CloseAsync();
        await queue.Receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ADeadLetterThatIsSentAgainIsAMessage()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage("twice") { ApplicationProperties = { ["number"] = 7 } });
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne(), "once more", "and again");
        var dead = await queue.DeadLetters.ReceiveOne();
        await queue.Send(new ServiceBusMessage(dead));
        await queue.DeadLetters.CompleteMessageAsync(dead);
        var again = await queue.Receiver.Take();
        Assert.Equal(("twice", 1, dead.MessageId), (again.Body.ToString(), again.DeliveryCount, again.MessageId));
        // This SDK leaves the reason and its description out of the copy.
        Assert.Equal(new Dictionary<string, object> { ["number"] = 7 }, again.ApplicationProperties);
        Assert.Null(await queue.DeadLetters.PeekMessageAsync(0));
    }

    [Fact]
    public async Task AReceivedMessageThatIsSentAgainArrivesAsItWas()
    {
        await using var queue = await Queue.Create();
        byte[] body = [0, 1, 0x62, 0xff];
        await queue.Send(new ServiceBusMessage(body)
        {
            MessageId = "id", CorrelationId = "the request", Subject = "orders", ContentType = "application/json",
            ReplyTo = "the reply queue", To = "the target", SessionId = "session", PartitionKey = "session",
            ApplicationProperties = { ["number"] = 7, ["text"] = "naïve", ["flag"] = true },
        });
        var first = await queue.Receiver.Take();
        await queue.Send(new ServiceBusMessage(first));
        var second = await queue.Receiver.Take();
        Assert.Equal(Seen(first), Seen(second));
        Assert.Equal(body, second.Body.ToArray());
        Assert.Equal(first.ApplicationProperties, second.ApplicationProperties);
        Assert.Equal(first.SequenceNumber + 1, second.SequenceNumber);
        Assert.NotEqual(first.LockToken, second.LockToken);
    }

    private static string[] Seen(ServiceBusReceivedMessage message) =>
    [
        message.MessageId, message.CorrelationId, message.Subject, message.ContentType, message.ReplyTo, message.To,
        message.SessionId, message.PartitionKey,
    ];
}
