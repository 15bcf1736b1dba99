using System.Collections.Concurrent;

namespace Railbus.Interop;

/// <summary>Processors, with and without sessions: handlers are called, messages are settled for them.</summary>
public class Processors
{
    [Fact]
    public async Task AProcessorHandlesAndCompletesEveryMessage()
    {
        await using var queue = await Queue.Create();
        var sent = Enumerable.Range(0, 20).Select(number => number.ToString()).ToArray();
        await queue.Send([.. sent.Select(body => new ServiceBusMessage(body))]);
        var handled = new Handled<string>(sent.Length);
        await using var processor = queue.Client.CreateProcessor(queue.Name,
            new ServiceBusProcessorOptions { MaxConcurrentCalls = 4, PrefetchCount = 5 });
        processor.ProcessMessageAsync += arguments => handled.Add(arguments.Message.Body.ToString());
        await Process(processor, handled);
        Assert.Equal(sent.Order(), handled.All.Order());
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AMessageWhoseHandlerFailsIsHandledAgain()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var handled = new Handled<int>(2);
        await using var processor = queue.Client.CreateProcessor(queue.Name);
        processor.ProcessMessageAsync += async arguments =>
        {
            await handled.Add(arguments.Message.DeliveryCount);
            if (arguments.Message.DeliveryCount == 1)
            {
                throw new FormatException("the first time");
            }
        };
        var errors = await Process(processor, handled);
        Assert.Equal([1, 2], handled.All);
        Assert.Contains(errors, error => error is FormatException);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AHandlerSettlesAsItLikes()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var handled = new Handled<string>(1);
        await using var processor = queue.Client.CreateProcessor(queue.Name);
        processor.ProcessMessageAsync += async arguments =>
        {
            await arguments.DeadLetterMessageAsync(arguments.Message, "reason");
            await handled.Add(arguments.Message.Body.ToString());
        };
        await Process(processor, handled);
        Assert.Equal("reason", (await queue.DeadLetters.ReceiveOne()).DeadLetterReason);
    }

    [Fact]
    public async Task AMissingQueueIsReportedToTheErrorHandler()
    {
        await using var client = Broker.OfTheRun.NewClient();
        var reported = new Handled<ServiceBusFailureReason>(1);
        await using var processor = client.CreateProcessor(Queue.NewName());
        processor.ProcessMessageAsync += _ => Task.CompletedTask;
        processor.ProcessErrorAsync += arguments => reported.Add(((ServiceBusException)arguments.Exception).Reason);
        await processor.StartProcessingAsync();
        await reported.Enough;
        await processor.StopProcessingAsync();
        Assert.Equal(ServiceBusFailureReason.MessagingEntityNotFound, reported.All.First());
    }

    [Fact]
    public async Task ASessionProcessorHandlesEachSessionInItsOrder()
    {
        await using var queue = await Queue.CreateWithSessions();
        foreach (var body in new[] { "1", "2", "3" })
        {
            await queue.SendInSession("a", body);
            await queue.SendInSession("b", body);
        }
        var handled = new Handled<(string Session, string Body)>(6);
        await using var processor = queue.Client.CreateSessionProcessor(queue.Name,
            new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 2 });
        processor.ProcessMessageAsync += arguments =>
            handled.Add((arguments.SessionId, arguments.Message.Body.ToString()));
        await Process(processor, handled);
        Assert.All(["a", "b"], session => Assert.Equal(["1", "2", "3"],
            handled.All.Where(one => one.Session == session).Select(one => one.Body)));
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ASessionProcessorKeepsAStateAndReleasesItsSession()
    {
        await using var queue = await Queue.CreateWithSessions();
        await queue.SendInSession("a", "one");
        var closed = new Handled<string>(1);
        await using var processor = queue.Client.CreateSessionProcessor(queue.Name);
        processor.ProcessMessageAsync += async arguments =>
        {
            await arguments.SetSessionStateAsync(arguments.Message.Body);
            arguments.ReleaseSession();
        };
        processor.SessionClosingAsync += async arguments =>
            await closed.Add((await arguments.GetSessionStateAsync()).ToString());
        await Process(processor, closed);
        await using var receiver = await queue.Accept("a");
        Assert.Equal(["one"], closed.All);
        Assert.Equal("one", (await receiver.GetSessionStateAsync()).ToString());
    }

    [Fact]
    public async Task AProcessorRenewsTheLockOfTheMessageThatItHandles()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromSeconds(5), broker);
        await queue.Send("body");
        var handled = new Handled<int>(1);
        await using var processor = queue.Client.CreateProcessor(queue.Name);
        processor.ProcessMessageAsync += async arguments =>
        {
            await OutliveTheLock(broker, () => arguments.Message.LockedUntil);
            await handled.Add(arguments.Message.DeliveryCount);
        };
        Assert.Empty(await Process(processor, handled));
        Assert.Equal([1], handled.All);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AProcessorRenewsTheLocksOfAllMessagesThatItHandles()
    {
        const int Calls = 10;
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromSeconds(5), broker);
        await queue.Send([.. Enumerable.Range(0, Calls).Select(number => new ServiceBusMessage($"{number}"))]);
        var (held, handled) = (new Handled<ServiceBusReceivedMessage>(Calls), new Handled<int>(Calls));
        // All handlers have their message before time passes, and go on when it has.
        var outlived = new Lazy<Task>(async () =>
        {
            await held.Enough;
            var first = held.All.Max(message => message.LockedUntil);
            await broker.Advance("PT4S");
            await Receivers.Eventually(() => held.All.All(message => message.LockedUntil > first));
            await broker.Advance("PT4S");
        });
        await using var processor = queue.Client.CreateProcessor(queue.Name,
            new ServiceBusProcessorOptions { MaxConcurrentCalls = Calls });
        processor.ProcessMessageAsync += async arguments =>
        {
            await held.Add(arguments.Message);
            await outlived.Value;
            await handled.Add(arguments.Message.DeliveryCount);
        };
        Assert.Empty(await Process(processor, handled));
        Assert.Equal(Enumerable.Repeat(1, Calls), handled.All);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ASessionProcessorRenewsTheLockOfTheSessionThatItHandles()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options =>
        {
            options.RequiresSession = true;
            options.LockDuration = TimeSpan.FromSeconds(5);
        }, broker);
        await queue.SendInSession("a", "body");
        var handled = new Handled<int>(1);
        await using var processor = queue.Client.CreateSessionProcessor(queue.Name);
        processor.ProcessMessageAsync += async arguments =>
        {
            await OutliveTheLock(broker, () => arguments.SessionLockedUntil);
            await handled.Add(arguments.Message.DeliveryCount);
        };
        await Process(processor, handled);
        Assert.Equal([1], handled.All);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AHandlerThatLosesItsLockIsToldAndTheMessageComesAgain()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.LockDuration = TimeSpan.FromSeconds(5), broker);
        await queue.Send("body");
        var handled = new Handled<int>(2);
        await using var processor = queue.Client.CreateProcessor(queue.Name,
            new ServiceBusProcessorOptions { MaxAutoLockRenewalDuration = TimeSpan.Zero });
        processor.ProcessMessageAsync += async arguments =>
        {
            if (arguments.Message.DeliveryCount == 1)
            {
                await broker.Advance("PT5S");
            }
            await handled.Add(arguments.Message.DeliveryCount);
        };
        var errors = await Process(processor, handled);
        Assert.Equal([1, 2], handled.All);
        Assert.Contains(errors, error => error is ServiceBusException
        {
            Reason: ServiceBusFailureReason.MessageLockLost,
        });
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>Lets a lock of five seconds nearly run out, twice; in between the SDK renews it.</summary>
    private static async Task OutliveTheLock(OwnBroker broker, Func<DateTimeOffset> lockedUntil)
    {
        var first = lockedUntil();
        await broker.Advance("PT4S");
        await Receivers.Eventually(() => lockedUntil() > first);
        await broker.Advance("PT4S");
    }

    /// <summary>Runs a processor until enough has been handled, and returns the errors that it reported.</summary>
    private static async Task<List<Exception>> Process<T>(ServiceBusProcessor processor, Handled<T> handled)
    {
        var errors = new ConcurrentQueue<Exception>();
        processor.ProcessErrorAsync += arguments => Keep(errors, arguments);
        await processor.StartProcessingAsync();
        await handled.Enough;
        await processor.StopProcessingAsync();
        return [.. errors];
    }

    private static async Task Process<T>(ServiceBusSessionProcessor processor, Handled<T> handled)
    {
        var errors = new ConcurrentQueue<Exception>();
        processor.ProcessErrorAsync += arguments => Keep(errors, arguments);
        await processor.StartProcessingAsync();
        await handled.Enough;
        await processor.CloseAsync();
        Assert.Empty(errors);
    }

    private static Task Keep(ConcurrentQueue<Exception> errors, ProcessErrorEventArgs arguments)
    {
        errors.Enqueue(arguments.Exception);
        return Task.CompletedTask;
    }

    /// <summary>What handlers were given, and that it is as much as was expected.</summary>
    private sealed class Handled<T>(int expected)
    {
        private readonly TaskCompletionSource enough = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public ConcurrentQueue<T> All { get; } = new();

        public Task Enough => enough.Task.WaitAsync(Receivers.Patience);

        public Task Add(T one)
        {
            All.Enqueue(one);
            if (All.Count >= expected)
            {
                enough.TrySetResult();
            }
            return Task.CompletedTask;
        }
    }
}
