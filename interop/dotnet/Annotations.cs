namespace Railbus.Interop;

/// <summary>Annotations: which ones a message carries, by how it came here and how it is looked at.</summary>
public class Annotations
{
    private const string EnqueuedTime = "x-opt-enqueued-time";
    private const string EnqueuedSequenceNumber = "x-opt-enqueue-sequence-number";
    private const string LockedUntil = "x-opt-locked-until";
    private const string LockToken = "x-opt-lock-token";
    private const string ScheduledTime = "x-opt-scheduled-enqueue-time";
    private const string SequenceNumber = "x-opt-sequence-number";
    private const string State = "x-opt-message-state";

    private static void AssertAnnotations(ServiceBusReceivedMessage message, params string[] expected) =>
        Assert.Equal(expected.Order(), message.GetRawAmqpMessage().MessageAnnotations.Keys.Order());

    private static void AssertDeliveryAnnotations(ServiceBusReceivedMessage message, params string[] expected) =>
        Assert.Equal(expected.Order(), message.GetRawAmqpMessage().DeliveryAnnotations.Keys.Order());

    [Fact]
    public async Task APlainDeliveryHasItsTimeNumberAndLock()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        AssertAnnotations(received, EnqueuedTime, SequenceNumber, LockedUntil);
        AssertDeliveryAnnotations(received, LockToken);
        Assert.Equal(Guid.Parse(received.LockToken), received.GetRawAmqpMessage().DeliveryAnnotations[LockToken]);
    }

    [Fact]
    public async Task ADeliveryToDeleteHasNoLock()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.ReceiveAndDelete().ReceiveOne();
        AssertAnnotations(received, EnqueuedTime, SequenceNumber);
        AssertDeliveryAnnotations(received);
    }

    [Fact]
    public async Task ACopyOfASubscriptionIsAPlainDelivery()
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("all");
        await topic.Send(new ServiceBusMessage("body"));
        AssertAnnotations(await subscription.ReceiveOne(), EnqueuedTime, SequenceNumber, LockedUntil);
    }

    [Fact]
    public async Task ADeferredMessageHasAStateAndALock()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var deferred = await queue.Receiver.DeferAndReceive();
        AssertAnnotations(deferred, EnqueuedTime, SequenceNumber, LockedUntil, State);
        AssertDeliveryAnnotations(deferred, LockToken);
        Assert.Equal(ServiceBusMessageState.Deferred, deferred.State);
    }

    [Fact]
    public async Task APeekedMessageHasAStateAndALockedUntilThatIsPast()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var peeked = await queue.Receiver.PeekMessageAsync();
        AssertAnnotations(peeked, EnqueuedTime, SequenceNumber, LockedUntil, State);
        AssertDeliveryAnnotations(peeked);
        // The broker says the year 1; this SDK reads no time before 1970.
        Assert.Equal((ServiceBusMessageState.Active, DateTimeOffset.UnixEpoch), (peeked.State, peeked.LockedUntil));
    }

    [Fact]
    public async Task APeekedMessageThatIsLockedShowsTheDeadline()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        var peeked = await queue.Receiver.PeekMessageAsync();
        // Each is reckoned from the time that the lock still has, in whole milliseconds.
        Assert.Equal(received.LockedUntil, peeked.LockedUntil, TimeSpan.FromMilliseconds(100));
    }

    [Fact]
    public async Task AMessageThatWasScheduledSaysSo()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        var due = DateTimeOffset.UtcNow.AddHours(1);
        await queue.Sender.ScheduleMessageAsync(new("by call"), due);
        await queue.Send(new ServiceBusMessage("by property") { ScheduledEnqueueTime = due });
        await broker.Advance("PT1H1S");
        Assert.All(await queue.Receiver.ReceiveMany(2), message =>
        {
            AssertAnnotations(message, EnqueuedTime, SequenceNumber, LockedUntil, ScheduledTime, State);
            Assert.Equal((ServiceBusMessageState.Scheduled, 2),
                (message.State, message.GetRawAmqpMessage().MessageAnnotations[State]));
        });
    }

    [Fact]
    public async Task AMessageWhoseTimeHadPassedWasNotScheduled()
    {
        await using var queue = await Queue.Create();
        await queue.Sender.ScheduleMessageAsync(new("body"), DateTimeOffset.UtcNow.AddHours(-1));
        AssertAnnotations(await queue.Receiver.ReceiveOne(), EnqueuedTime, SequenceNumber, LockedUntil, ScheduledTime);
    }

    [Fact]
    public async Task AForwardedMessageHasTheNumberOfItsFirstEntity()
    {
        await using var target = await Queue.Create();
        await using var source = await Queue.Create(options => options.ForwardTo = target.Name);
        await target.Send("first in the target");
        await source.Send("body");
        var plain = await target.Receiver.ReceiveOne();
        var forwarded = await target.Receiver.ReceiveOne();
        AssertAnnotations(plain, EnqueuedTime, SequenceNumber, LockedUntil);
        AssertAnnotations(forwarded, EnqueuedTime, SequenceNumber, LockedUntil, EnqueuedSequenceNumber);
        Assert.Equal((2, 1), (forwarded.SequenceNumber, forwarded.EnqueuedSequenceNumber));
    }

    [Fact]
    public async Task TheSendersAnnotationsArrive()
    {
        await using var queue = await Queue.Create();
        var message = new ServiceBusMessage("body");
        message.GetRawAmqpMessage().DeliveryAnnotations["x-of-the-delivery"] = 7L;
        message.GetRawAmqpMessage().MessageAnnotations["x-of-the-message"] = "text";
        await queue.Send(message);
        var received = await queue.Receiver.ReceiveOne();
        AssertAnnotations(received, EnqueuedTime, SequenceNumber, LockedUntil, "x-of-the-message");
        AssertDeliveryAnnotations(received, LockToken, "x-of-the-delivery");
        Assert.Equal((7L, "text"), (received.GetRawAmqpMessage().DeliveryAnnotations["x-of-the-delivery"],
            received.GetRawAmqpMessage().MessageAnnotations["x-of-the-message"]));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task AFooterArrives(int messages)
    {
        await using var queue = await Queue.Create();
        var sent = Enumerable.Range(0, messages).Select(_ => new ServiceBusMessage("body")).ToArray();
        foreach (var message in sent)
        {
            message.ApplicationProperties["color"] = "blue";
            message.GetRawAmqpMessage().Footer["checksum"] = 17L;
        }
        // Several go as a batch.
        await queue.Send(sent);
        foreach (var received in await queue.Receiver.ReceiveMany(messages))
        {
            Assert.Equal("body", received.Body.ToString());
            Assert.Equal("blue", received.ApplicationProperties["color"]);
            Assert.Equal([new("checksum", 17L)], received.GetRawAmqpMessage().Footer);
        }
    }

    [Fact]
    public async Task TheBrokersLockTokenReplacesOneThatCameAlong()
    {
        await using var queue = await Queue.Create();
        var message = new ServiceBusMessage("body");
        message.GetRawAmqpMessage().DeliveryAnnotations[LockToken] = Guid.Empty;
        await queue.Send(message);
        var received = await queue.Receiver.ReceiveOne();
        Assert.Equal(Guid.Parse(received.LockToken), received.GetRawAmqpMessage().DeliveryAnnotations[LockToken]);
        await queue.Receiver.CompleteMessageAsync(received);
    }
}
