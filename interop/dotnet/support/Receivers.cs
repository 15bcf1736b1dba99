namespace Railbus.Interop;

/// <summary>The steps with receivers that tests repeat.</summary>
internal static class Receivers
{
    /// <summary>How long to wait for what must come.</summary>
    public static readonly TimeSpan Patience = TimeSpan.FromSeconds(20);

    /// <summary>How long to wait for what must not come.</summary>
    private static readonly TimeSpan Lull = TimeSpan.FromMilliseconds(300);

    /// <summary>Receives the next message.</summary>
    public static async Task<ServiceBusReceivedMessage> ReceiveOne(this ServiceBusReceiver receiver)
    {
        var received = await receiver.ReceiveMessageAsync(Patience);
        Assert.True(received != null, $"nothing came from {receiver.EntityPath}");
        return received;
    }

    /// <summary>Receives this many messages.</summary>
    public static async Task<List<ServiceBusReceivedMessage>> ReceiveMany(this ServiceBusReceiver receiver, int count)
    {
        var received = new List<ServiceBusReceivedMessage>();
        while (received.Count < count)
        {
            received.Add(await receiver.ReceiveOne());
        }
        return received;
    }

    /// <summary>Receives and completes the next message.</summary>
    public static async Task<ServiceBusReceivedMessage> Take(this ServiceBusReceiver receiver)
    {
        var received = await receiver.ReceiveOne();
        await receiver.CompleteMessageAsync(received);
        return received;
    }

    /// <summary>Receives the next message, defers it and receives it by its number.</summary>
    public static async Task<ServiceBusReceivedMessage> DeferAndReceive(this ServiceBusReceiver receiver)
    {
        var received = await receiver.ReceiveOne();
        await receiver.DeferMessageAsync(received);
        return await receiver.ReceiveDeferredMessageAsync(received.SequenceNumber);
    }

    public static async Task AssertNothingComes(this ServiceBusReceiver receiver) =>
        Assert.Null(await receiver.ReceiveMessageAsync(Lull));

    /// <summary>Waits for what a client learns by itself.</summary>
    public static Task Eventually(Func<bool> holds) => Eventually(() => Task.FromResult(holds()));

    /// <summary>Waits until an answer is yes.</summary>
    public static async Task Eventually(Func<Task<bool>> holds)
    {
        using var patience = new CancellationTokenSource(Patience);
        while (!await holds())
        {
            await Task.Delay(10, patience.Token);
        }
    }

    public static string[] Bodies(this IEnumerable<ServiceBusReceivedMessage> messages) =>
        [.. messages.Select(message => message.Body.ToString())];

    /// <summary>Asserts that an operation fails for a reason of Service Bus.</summary>
    public static async Task<ServiceBusException> AssertFails(ServiceBusFailureReason reason, Func<Task> operation)
    {
        var failure = await Assert.ThrowsAsync<ServiceBusException>(operation);
        Assert.Equal(reason, failure.Reason);
        return failure;
    }
}
