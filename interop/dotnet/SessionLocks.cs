namespace Railbus.Interop;

/// <summary>Locks of sessions: one clock for the session and none for its messages.</summary>
public class SessionLocks
{
    private static readonly DateTimeOffset Never = new(9999, 12, 31, 23, 59, 59, 999, TimeSpan.Zero);

    [Fact]
    public async Task AMessageIsLockedForAsLongAsItsSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        AssertNever((await receiver.ReceiveOne()).LockedUntil);
    }

    [Fact]
    public async Task ADeferredMessageIsLockedForAsLongAsItsSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        AssertNever((await receiver.DeferAndReceive()).LockedUntil);
    }

    [Fact]
    public async Task APeekShowsThatAMessageIsLockedForAsLongAsItsSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        await receiver.ReceiveOne();
        AssertNever((await receiver.PeekMessageAsync()).LockedUntil);
    }

    private static void AssertNever(DateTimeOffset lockedUntil) =>
        Assert.Equal(Never, lockedUntil, TimeSpan.FromMilliseconds(1));

    [Fact]
    public async Task ADeferredMessageIsSettledAfterTheFirstDeadlineOfARenewedSession()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.CreateWithSessions(broker);
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        var deferred = await receiver.DeferAndReceive();
        await broker.Advance("PT50S");
        await receiver.RenewSessionLockAsync();
        await broker.Advance("PT50S");
        await receiver.CompleteMessageAsync(deferred);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ARenewedSessionIsLockedFromItsRenewal()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.CreateWithSessions(broker);
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        var first = receiver.SessionLockedUntil;
        var received = await receiver.ReceiveOne();
        await broker.Advance("PT50S");
        await receiver.RenewSessionLockAsync();
        Assert.InRange(receiver.SessionLockedUntil, first, first.AddMinutes(1));
        await broker.Advance("PT50S");
        await receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    public static TheoryData<string> Settlements() => ["complete", "abandon", "defer", "dead-letter"];

    [Theory]
    [MemberData(nameof(Settlements))]
    public async Task ASecondSettlementIsALostMessageLockAndTheSessionIsStillHeld(string settlement)
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one", "two");
        await using var receiver = await queue.Accept("a");
        // What came over the link this SDK judges by itself; it asks the broker about deferred messages.
        var first = await receiver.DeferAndReceive();
        await receiver.CompleteMessageAsync(first);
        await Receivers.AssertFails(ServiceBusFailureReason.MessageLockLost, () => settlement switch
        {
            "complete" => receiver.CompleteMessageAsync(first),
            "abandon" => receiver.AbandonMessageAsync(first),
            "defer" => receiver.DeferMessageAsync(first),
            _ => receiver.DeadLetterMessageAsync(first),
        });
        Assert.Equal("two", (await receiver.Take()).Body.ToString());
    }

    /// <summary>A receiver of this SDK only tells that it is closed, whatever the broker says.</summary>
    [Fact]
    public async Task AReceiverWithAnUnsettledMessageIsClosedAtTheDeadline()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.CreateWithSessions(broker);
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        var received = await receiver.ReceiveOne();
        await broker.Advance("PT1M");
        await Receivers.Eventually(() => receiver.IsClosed);
        await Assert.ThrowsAsync<ObjectDisposedException>(() => receiver.CompleteMessageAsync(received));
        await using var next = await queue.Accept("a");
        Assert.Equal(2, (await next.ReceiveOne()).DeliveryCount);
    }

    [Fact]
    public async Task AnIdleReceiverIsClosedHalfASecondAfterTheDeadline()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.CreateWithSessions(broker);
        await using var receiver = await queue.Accept("a");
        await broker.Advance("PT1M");
        await Receivers.AssertFails(ServiceBusFailureReason.SessionLockLost, () => receiver.RenewSessionLockAsync());
        await Receivers.AssertFails(ServiceBusFailureReason.SessionCannotBeLocked, () => queue.Accept("a"));
        Assert.False(receiver.IsClosed);
        await broker.Advance("PT1S");
        await Receivers.Eventually(() => receiver.IsClosed);
        await using var next = await queue.Accept("a");
        Assert.Equal("a", next.SessionId);
    }
}
