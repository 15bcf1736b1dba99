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
    public async Task AnEnumerationGetsTheMessagesOfTheNextSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("session", Sent);
        await using var receiver = await queue.Client.AcceptNextSessionAsync(queue.Name);
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
