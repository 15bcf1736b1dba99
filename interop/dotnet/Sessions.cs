namespace Railbus.Interop;

/// <summary>Sessions: one holder at a time, in order, with a state of their own.</summary>
public class Sessions
{
    [Fact]
    public async Task ASessionIsAcceptedByIdAndComesInOrder()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await queue.SendInSession("b", "of another");
        await queue.SendInSession("a", "two");
        await using var receiver = await queue.Accept("a");
        Assert.Equal("a", receiver.SessionId);
        Assert.Equal(["one", "two"], (await receiver.ReceiveMany(2)).Bodies());
        await receiver.AssertNothingComes();
    }

    [Fact]
    public async Task IdsThatDifferInLetterCaseAreOneSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("Order", "one");
        await queue.SendInSession("ORDER", "two");
        await using (var receiver = await queue.Accept("oRDER"))
        {
            Assert.Equal("oRDER", receiver.SessionId);
            var received = await receiver.ReceiveMany(2);
            Assert.Equal(["Order", "ORDER"], received.Select(message => message.SessionId));
            await receiver.SetSessionStateAsync(new("known"));
            foreach (var message in received) await receiver.CompleteMessageAsync(message);
        }
        await using var again = await queue.Accept("order");
        Assert.Equal("known", (await again.GetSessionStateAsync()).ToString());
    }

    [Fact]
    public async Task TheNextSessionIsOneWithMessages()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Client.AcceptNextSessionAsync(queue.Name);
        Assert.Equal("a", receiver.SessionId);
        Assert.Equal("one", (await receiver.Take()).Body.ToString());
    }

    [Fact]
    public async Task TheNextSessionIsTheOneWithTheOldestMessage()
    {
        await using var queue = await Queue.CreateWithSessions();
        foreach (var session in new[] { "c", "a", "b", "a", "c" })
        {
            await queue.SendInSession(session, $"of {session}");
        }
        foreach (var expected in new[] { "c", "a", "b" })
        {
            await using var receiver = await queue.Client.AcceptNextSessionAsync(queue.Name);
            Assert.Equal(expected, receiver.SessionId);
            var received = await receiver.ReceiveMany(expected == "b" ? 1 : 2);
            Assert.All(received, message => Assert.Equal($"of {expected}", message.Body.ToString()));
            if (expected == "c")
            {
                // The held session is not the next one, although its messages are the oldest.
                await using var other = await queue.Client.AcceptNextSessionAsync(queue.Name);
                Assert.Equal("a", other.SessionId);
            }
            foreach (var message in received)
            {
                await receiver.CompleteMessageAsync(message);
            }
        }
    }

    [Fact]
    public async Task WaitingForTheNextSessionEndsInATimeOut()
    {
        await using var queue = await Queue.Create(options => options.RequiresSession = true, null,
            options => options.RetryOptions.TryTimeout = TimeSpan.FromSeconds(1));
        await Receivers.AssertFails(ServiceBusFailureReason.ServiceTimeout,
            () => queue.Client.AcceptNextSessionAsync(queue.Name));
    }

    [Fact]
    public async Task AHeldSessionCanNotBeLocked()
    {
        await using var queue = await Queue.CreateWithSessions();
        await using (await queue.Accept("a"))
        {
            await Receivers.AssertFails(ServiceBusFailureReason.SessionCannotBeLocked, () => queue.Accept("a"));
        }
        await using var next = await queue.Accept("a");
        Assert.Equal("a", next.SessionId);
    }

    [Fact]
    public async Task AStateOutlivesItsHolderUntilItIsCleared()
    {
        await using var queue = await Queue.CreateWithSessions();
        await using (var first = await queue.Accept("a"))
        {
            Assert.Null(await first.GetSessionStateAsync());
            await first.SetSessionStateAsync(new("state"));
        }
        await using var second = await queue.Accept("a");
        Assert.Equal("state", (await second.GetSessionStateAsync()).ToString());
        await second.SetSessionStateAsync(null);
        Assert.Null(await second.GetSessionStateAsync());
    }

    [Fact]
    public async Task AStateIsWhateverBytesItWas()
    {
        await using var queue = await Queue.CreateWithSessions();
        byte[] state = [.. Enumerable.Range(0, 256).Select(value => (byte)value)];
        await using (var receiver = await queue.Accept("a"))
        {
            await receiver.SetSessionStateAsync(new(state));
        }
        await using var next = await queue.Accept("a");
        Assert.Equal(state, (await next.GetSessionStateAsync()).ToArray());
    }

    [Fact]
    public async Task AnEmptyStateIsNone()
    {
        await using var queue = await Queue.CreateWithSessions();
        await using var receiver = await queue.Accept("a");
        await receiver.SetSessionStateAsync(new("state"));
        await receiver.SetSessionStateAsync(new(Array.Empty<byte>()));
        Assert.Null(await receiver.GetSessionStateAsync());
    }

    [Fact]
    public async Task AnAbandonedMessageComesBeforeThoseBehindIt()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one", "two");
        await using var receiver = await queue.Accept("a");
        await receiver.AbandonMessageAsync(await receiver.ReceiveOne());
        Assert.Equal(["one", "two"], (await receiver.ReceiveMany(2)).Bodies());
    }

    [Fact]
    public async Task WhatAClosedReceiverHeldComesAgainUncounted()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using (var first = await queue.Accept("a"))
        {
            await first.ReceiveOne();
        }
        await using var second = await queue.Accept("a");
        Assert.Equal(1, (await second.ReceiveOne()).DeliveryCount);
    }

    [Fact]
    public async Task ADeferredMessageOfASessionComesByItsNumber()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        await receiver.CompleteMessageAsync(await receiver.DeferAndReceive());
        Assert.Empty(await receiver.PeekMessagesAsync(10));
    }

    [Fact]
    public async Task APeekShowsTheMessagesOfItsSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await queue.SendInSession("b", "two");
        await using var receiver = await queue.Accept("b");
        Assert.Equal(["two"], (await receiver.PeekMessagesAsync(10)).Bodies());
        Assert.Equal(["one", "two"], await queue.Bodies());
    }

    [Fact]
    public async Task DeadLettersAreReceivedWithoutASession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using var receiver = await queue.Accept("a");
        await receiver.DeadLetterMessageAsync(await receiver.ReceiveOne());
        Assert.Equal("a", (await queue.DeadLetters.ReceiveOne()).SessionId);
    }

    [Fact]
    public async Task SessionsWithMessagesOrAStateAreListed()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        await using (var receiver = await queue.Accept("b"))
        {
            await receiver.SetSessionStateAsync(new("state"));
        }
        var listed = new List<string>();
        await foreach (var session in queue.Client.GetMessageSessionsAsync(queue.Name))
        {
            listed.Add(session);
        }
        Assert.Equal(["a", "b"], listed.Order());
    }

    [Fact]
    public async Task APlainReceiverIsRefused()
    {
        await using var queue = await Queue.CreateWithSessions();
        await Assert.ThrowsAsync<InvalidOperationException>(queue.Receiver.ReceiveOne);
    }

    [Fact]
    public async Task ASessionReceiverIsRefusedWhereThereAreNoSessions()
    {
        await using var queue = await Queue.Create();
        await Assert.ThrowsAsync<InvalidOperationException>(() => queue.Accept("a"));
    }

    [Fact]
    public async Task ASessionThatIsNotExclusiveIsNotSupported()
    {
        await using var queue = await Queue.CreateWithSessions();
        var options = new ServiceBusSessionReceiverOptions { EnableNonExclusiveSession = true };
        await Assert.ThrowsAsync<NotSupportedException>(
            () => queue.Client.AcceptSessionAsync(queue.Name, "a", options));
    }

    [Fact]
    public async Task AMessageWithoutASessionIsRefused()
    {
        await using var queue = await Queue.CreateWithSessions();
        await Assert.ThrowsAsync<InvalidOperationException>(() => queue.Send("body"));
    }
}
