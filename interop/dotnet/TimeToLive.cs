using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Time to live: that of the sender or the entity, exactly, however often a message is sent on.</summary>
public class TimeToLive
{
    private static readonly TimeSpan Hour = TimeSpan.FromHours(1);

    /// <summary>Above 49.7 days the header cannot say it.</summary>
    public static TheoryData<TimeSpan> Times() =>
    [
        TimeSpan.FromSeconds(90), TimeSpan.FromMilliseconds(3_600_001), TimeSpan.FromDays(49), TimeSpan.FromDays(60),
        TimeSpan.FromDays(400),
    ];

    [Theory]
    [MemberData(nameof(Times), DisableDiscoveryEnumeration = true)]
    public async Task TheTimeToLiveIsWhatWasSent(TimeSpan time)
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage("body") { TimeToLive = time });
        AssertLives(time, await queue.Receiver.PeekMessageAsync());
        AssertLives(time, await queue.Receiver.ReceiveOne());
    }

    [Theory]
    [MemberData(nameof(Times), DisableDiscoveryEnumeration = true)]
    public async Task TheTimeToLiveOfAnEntityIsThatOfItsMessages(TimeSpan time)
    {
        await using var queue = await Queue.Create(options => options.DefaultMessageTimeToLive = time);
        await queue.Send("body");
        AssertLives(time, await queue.Receiver.PeekMessageAsync());
        AssertLives(time, await queue.Receiver.ReceiveOne());
    }

    [Fact]
    public async Task TheShorterTimeToLiveCounts()
    {
        await using var queue = await Queue.Create(options => options.DefaultMessageTimeToLive = Hour);
        await queue.Send(new ServiceBusMessage("body") { TimeToLive = 2 * Hour });
        AssertLives(Hour, await queue.Receiver.ReceiveOne());
    }

    [Fact]
    public async Task ASubscriptionShortensTheTimeToLiveOfItsTopic()
    {
        await using var topic = await Topic.Create(options => options.DefaultMessageTimeToLive = 2 * Hour);
        var plain = await topic.Subscribe("plain");
        var shorter = await topic.Subscribe("shorter",
            configure: options => options.DefaultMessageTimeToLive = Hour);
        await topic.Send(new ServiceBusMessage("body"));
        AssertLives(2 * Hour, await plain.ReceiveOne());
        AssertLives(Hour, await shorter.ReceiveOne());
    }

    /// <summary>What an action may set: text, a duration of its parameter, and one of the message.</summary>
    public static TheoryData<SqlRuleAction> ActionsOfAnHour() =>
    [
        new SqlRuleAction("SET sys.TimeToLive = '01:00:00'"),
        new SqlRuleAction("SET sys.TimeToLive = @life") { Parameters = { ["@life"] = Hour } },
        new SqlRuleAction("SET sys.TimeToLive = life"),
    ];

    [Theory]
    [MemberData(nameof(ActionsOfAnHour), DisableDiscoveryEnumeration = true)]
    public async Task AnActionSetsTheTimeToLiveOfItsCopy(SqlRuleAction action)
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var topic = await Topic.Create(broker: broker);
        var plain = await topic.Subscribe("plain");
        var changed = await topic.Subscribe("changed", action: action);
        await topic.Send(new ServiceBusMessage("body")
        {
            TimeToLive = 2 * Hour, ApplicationProperties = { ["life"] = Hour },
        });
        AssertLives(Hour, await changed.PeekMessageAsync(1));
        AssertLives(2 * Hour, await plain.PeekMessageAsync(1));
        await broker.Advance("PT1H1S");
        Assert.Empty(await changed.PeekMessagesAsync(10, 1));
        AssertLives(2 * Hour, await plain.ReceiveOne());
    }

    /// <summary>Asserts what the SDK shows and what it takes that from.</summary>
    private static void AssertLives(TimeSpan time, ServiceBusReceivedMessage message)
    {
        var properties = message.GetRawAmqpMessage().Properties;
        Assert.Equal(time, message.TimeToLive);
        Assert.Equal(time, properties.AbsoluteExpiryTime - properties.CreationTime);
        Assert.Equal(properties.AbsoluteExpiryTime, message.ExpiresAt);
    }

    [Fact]
    public async Task AMessageWithoutATimeToLiveLivesForever()
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        var raw = received.GetRawAmqpMessage();
        Assert.Equal(TimeSpan.MaxValue, received.TimeToLive);
        Assert.Equal((null, null, null),
            (raw.Header.TimeToLive, raw.Properties.CreationTime, raw.Properties.AbsoluteExpiryTime));
    }

    [Fact]
    public async Task TheCreationTimeIsTheEnqueuedTimeUnlessTheSenderGaveOne()
    {
        await using var queue = await Queue.Create(options => options.DefaultMessageTimeToLive = Hour);
        var given = new ServiceBusMessage("given");
        var birth = new DateTimeOffset(2026, 1, 2, 3, 4, 5, TimeSpan.Zero);
        given.GetRawAmqpMessage().Properties.CreationTime = birth;
        await queue.Send(given);
        await queue.Send("not given");
        var received = await queue.Receiver.ReceiveMany(2);
        Assert.Equal([birth, received[1].EnqueuedTime],
            received.Select(message => message.GetRawAmqpMessage().Properties.CreationTime));
        Assert.All(received, message => AssertLives(Hour, message));
    }

    public static TheoryData<TimeSpan> TimesToSendOn() => [2 * Hour, TimeSpan.FromDays(60)];

    [Theory]
    [MemberData(nameof(TimesToSendOn), DisableDiscoveryEnumeration = true)]
    public async Task AMessageThatIsSentOnKeepsItsTimeToLive(TimeSpan time)
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(broker: broker);
        await queue.Send(new ServiceBusMessage("body") { TimeToLive = time });
        await SendOn(broker, queue, time);
    }

    [Fact]
    public async Task AMessageThatIsSentOnKeepsTheTimeToLiveOfItsEntity()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.DefaultMessageTimeToLive = 2 * Hour, broker);
        await queue.Send("body");
        await SendOn(broker, queue, 2 * Hour);
    }

    /// <summary>Sends a message again and again, each time after it has lain in the queue for a while.</summary>
    private static async Task SendOn(OwnBroker broker, Queue queue, TimeSpan time)
    {
        for (var round = 0; round < 3; round++)
        {
            await broker.Advance("PT10M");
            var received = await queue.Receiver.Take();
            AssertLives(time, received);
            await queue.Send(new ServiceBusMessage(received));
        }
        AssertLives(time, await queue.Receiver.ReceiveOne());
    }

    [Fact]
    public async Task AScheduledMessageLivesFromItsActivation()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(options => options.DefaultMessageTimeToLive = Hour, broker);
        await queue.Sender.ScheduleMessageAsync(new("body"), DateTimeOffset.UtcNow.AddHours(5));
        await broker.Advance("PT5H1S");
        var received = await queue.Receiver.ReceiveOne();
        AssertLives(Hour, received);
        Assert.Equal(received.EnqueuedTime + Hour, received.ExpiresAt);
    }

    [Fact]
    public async Task AForwardedMessageHasTheTimeToLiveOfItsDestination()
    {
        await using var target = await Queue.Create(options => options.DefaultMessageTimeToLive = Hour);
        await using var source = await Queue.Create(options =>
        {
            options.DefaultMessageTimeToLive = 2 * Hour;
            options.ForwardTo = target.Name;
        });
        await source.Send("body");
        AssertLives(Hour, await target.Receiver.ReceiveOne());
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task AnExpiredMessageIsDeadLetteredOrDropped(bool deadLettered)
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        await using var queue = await Queue.Create(
            options => options.DeadLetteringOnMessageExpiration = deadLettered, broker);
        await queue.Send(new ServiceBusMessage("body") { TimeToLive = TimeSpan.FromDays(60) });
        await broker.Advance("P59D");
        Assert.Equal(["body"], await queue.Bodies());
        await broker.Advance("P1DT1S");
        Assert.Empty(await queue.Bodies());
        var dead = await queue.DeadLetters.PeekMessagesAsync(10);
        Assert.Equal(deadLettered ? [("TTLExpiredException", "The message expired and was dead lettered.")] : [],
            dead.Select(message => (message.DeadLetterReason, message.DeadLetterErrorDescription)));
    }
}
