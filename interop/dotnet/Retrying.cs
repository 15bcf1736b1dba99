namespace Railbus.Interop;

/// <summary>
/// Delayed retry: a message waits after a failed delivery, as its receiver or its queue's <c>retry-backoff</c> says.
/// </summary>
public class Retrying
{
    [Theory]
    [InlineData("x-opt-delivery-delay")]
    [InlineData("x-opt-delivery-time")]
    public async Task AnAbandonedMessageWaitsAsItsReceiverSays(string key)
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromMinutes(5), broker);
        await queue.Send(new ServiceBusMessage("failing"), new ServiceBusMessage("behind"));
        var first = await queue.Receiver.ReceiveOne();
        var time = key == "x-opt-delivery-delay"
            ? 60_000
            : first.EnqueuedTime.AddMinutes(1).ToUnixTimeMilliseconds();
        await queue.Receiver.AbandonMessageAsync(first,
            new Dictionary<string, object> { [key] = time, ["added"] = 7L });
        var peeked = await queue.Receiver.PeekMessageAsync();
        Assert.Equal(("failing", ServiceBusMessageState.Scheduled), (peeked.Body.ToString(), peeked.State));
        Assert.Equal("behind", (await queue.Receiver.Take()).Body.ToString());
        await broker.Advance("PT1M");
        var again = await queue.Receiver.Take();
        Assert.Equal(("failing", first.SequenceNumber, 2),
            (again.Body.ToString(), again.SequenceNumber, again.DeliveryCount));
        Assert.Equal(new Dictionary<string, object> { ["added"] = 7L }, again.ApplicationProperties);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task TheWaitGrowsWithEachFailedDelivery()
    {
        await using var broker = await OwnBroker.WithVirtualClock("""
            [[queues]]
            name = "backoff"
            lock-duration = "PT5M"
            retry-backoff = { min = "PT10S", max = "PT1M", factor = 3 }
            """);
        await using var client = broker.NewClient();
        await client.CreateSender("backoff").SendMessageAsync(new("body"));
        var receiver = client.CreateReceiver("backoff");
        foreach (var wait in new[] { "PT10S", "PT30S", "PT1M" })
        {
            await receiver.AbandonMessageAsync(await receiver.ReceiveOne());
            Assert.Equal(ServiceBusMessageState.Scheduled, (await receiver.PeekMessageAsync(0)).State);
            await broker.Advance(wait);
        }
        Assert.Equal(4, (await receiver.Take()).DeliveryCount);
        Assert.Null(await receiver.PeekMessageAsync(0));
    }
}
