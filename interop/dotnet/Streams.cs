namespace Railbus.Interop;

/// <summary>Streams: messages as an asynchronous enumeration, of a queue and of a session.</summary>
public class Streams
{
    private static readonly string[] Sent = ["first", "second", "third"];

    [Fact]
    public async Task AnEnumerationGetsEveryMessage()
    {
        await using var queue = await Queue.Create();
        await queue.Send([.. Sent.Select(body => new ServiceBusMessage(body))]);
        Assert.Equal(Sent, await Enumerate(queue.Receiver));
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AnEnumerationGetsWhatIsSentWhileItWaits()
    {
        await using var queue = await Queue.Create();
        await queue.Send("0");
        await using var receiver = queue.ReceiveAndDelete();
        using var patience = new CancellationTokenSource(Receivers.Patience);
        var count = 0;
        await foreach (var message in receiver.ReceiveMessagesAsync(patience.Token))
        {
            Assert.Equal($"{count++}", message.Body.ToString());
            if (count == 5)
            {
                break;
            }
            await queue.Send($"{count}");
        }
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AnEnumerationSettlesEachMessageInItsOwnWay()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("complete"), new("dead-letter"), new("defer"));
        using var patience = new CancellationTokenSource(Receivers.Patience);
        long? deferred = null;
        await foreach (var message in queue.Receiver.ReceiveMessagesAsync(patience.Token))
        {
            switch (message.Body.ToString())
            {
                case "complete":
                    await queue.Receiver.CompleteMessageAsync(message);
                    break;
                case "dead-letter":
                    await queue.Receiver.DeadLetterMessageAsync(message, "as told");
                    break;
                default:
                    await queue.Receiver.DeferMessageAsync(message);
                    deferred = message.SequenceNumber;
                    break;
            }
            if (deferred is long number)
            {
                Assert.Equal("defer", (await queue.Receiver.ReceiveDeferredMessageAsync(number)).Body.ToString());
                break;
            }
        }
        Assert.Equal(["defer"], await queue.Bodies());
        Assert.Equal(["dead-letter"], (await queue.DeadLetters.PeekMessagesAsync(10)).Bodies());
    }

    [Theory]
    [InlineData("session")]
    [InlineData(null)]
    public async Task AnEnumerationGetsTheMessagesOfASession(string? asked)
    {
        await using var queue = await Queue.CreateWithSessions();
        foreach (var body in Sent)
        {
            await queue.SendInSession("session", body);
            await queue.SendInSession("another", "of another");
        }
        await using var receiver = asked == null
            ? await queue.Client.AcceptNextSessionAsync(queue.Name)
            : await queue.Accept(asked);
        Assert.Equal("session", receiver.SessionId);
        Assert.Equal(Sent, await Enumerate(receiver));
    }

    /// <summary>Completes as many messages as were sent; the enumeration itself has no end.</summary>
    private static async Task<List<string>> Enumerate(ServiceBusReceiver receiver)
    {
        using var patience = new CancellationTokenSource(Receivers.Patience);
        var bodies = new List<string>();
        await foreach (var message in receiver.ReceiveMessagesAsync(patience.Token))
        {
            bodies.Add(message.Body.ToString());
            await receiver.CompleteMessageAsync(message);
            if (bodies.Count == Sent.Length)
            {
                break;
            }
        }
        return bodies;
    }
}
