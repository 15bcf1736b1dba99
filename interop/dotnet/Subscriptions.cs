using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Subscriptions: which copies of a topic's messages they get, and what is in these.</summary>
public class Subscriptions
{
    [Fact]
    public async Task EverySubscriptionGetsACopyOfItsOwn()
    {
        await using var topic = await Topic.Create();
        var (first, second) = (await topic.Subscribe("first"), await topic.Subscribe("second"));
        await topic.Send(new ServiceBusMessage("body"));
        Assert.Equal("body", (await first.Take()).Body.ToString());
        Assert.Equal("body", (await second.Take()).Body.ToString());
    }

    public static TheoryData<RuleFilter> FiltersOfOrders() =>
    [
        new SqlRuleFilter("amount > 100 AND sys.Label LIKE 'order%'"),
        new SqlRuleFilter("amount >= @least AND EXISTS(colour)") { Parameters = { ["@least"] = 150 } },
        new SqlRuleFilter("colour IN ('red', 'blue') AND NOT amount IS NULL"),
        new CorrelationRuleFilter { Subject = "order-1" },
        new CorrelationRuleFilter { ApplicationProperties = { ["amount"] = 150, ["colour"] = "red" } },
        new CorrelationRuleFilter { ApplicationProperties = { ["AMOUNT"] = 150, ["Colour"] = "red" } },
        new CorrelationRuleFilter("correlation") { MessageId = "id", ContentType = "text/plain" },
    ];

    [Theory]
    [MemberData(nameof(FiltersOfOrders), DisableDiscoveryEnumeration = true)]
    public async Task AFilterSelects(RuleFilter filter)
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("some", filter);
        await topic.Send(new("other") { Subject = "other" }, new("order")
        {
            MessageId = "id",
            Subject = "order-1",
            CorrelationId = "correlation",
            ContentType = "text/plain",
            ApplicationProperties = { ["amount"] = 150, ["colour"] = "red" },
        });
        Assert.Equal(["order"], (await subscription.PeekMessagesAsync(10)).Bodies());
    }

    public static TheoryData<string, decimal, bool> Prices() => new()
    {
        { "price = 10.5", 10.50m, true },
        { "price = 10.5", 10.51m, false },
        { "price > 10 AND price < 11", 10.50m, true },
        { "price = 1050", 1050m, true },
        { "price = 1050", 10.50m, false },
        { "price < 0", -0.01m, true },
        { "price = cost", 10.500m, true },
    };

    [Theory]
    [MemberData(nameof(Prices))]
    public async Task ADecimalIsComparedByItsValue(string condition, decimal price, bool selected)
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("some", new SqlRuleFilter(condition));
        await topic.Send(new ServiceBusMessage
        {
            ApplicationProperties = { ["price"] = price, ["cost"] = 10.5m },
        });
        var prices = (await subscription.PeekMessagesAsync(10)).Select(one => one.ApplicationProperties["price"]);
        Assert.Equal(selected ? [price] : [], prices);
    }

    [Fact]
    public async Task AFalseFilterSelectsNothing()
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("none", new FalseRuleFilter());
        await topic.Send(new ServiceBusMessage("body"));
        Assert.Empty(await subscription.PeekMessagesAsync(10));
    }

    [Fact]
    public async Task AnActionChangesTheCopyAndNamesItsRule()
    {
        await using var topic = await Topic.Create();
        var plain = await topic.Subscribe("plain");
        var action = new SqlRuleAction("SET priority = 'high'; REMOVE colour");
        var changed = await topic.Subscribe("changed", action: action);
        await topic.Send(new ServiceBusMessage { ApplicationProperties = { ["colour"] = "red" } });
        Assert.Equal(new Dictionary<string, object> { ["priority"] = "high", ["RuleName"] = "rule" },
            (await changed.ReceiveOne()).ApplicationProperties);
        Assert.Equal(new Dictionary<string, object> { ["colour"] = "red" },
            (await plain.ReceiveOne()).ApplicationProperties);
    }

    [Fact]
    public async Task ADeadLetterIsThatOfOneSubscription()
    {
        await using var topic = await Topic.Create();
        var (first, second) = (await topic.Subscribe("first"), await topic.Subscribe("second"));
        await topic.Send(new ServiceBusMessage("body"));
        await first.DeadLetterMessageAsync(await first.ReceiveOne(), "reason");
        Assert.Equal("reason", (await topic.DeadLetters("first").ReceiveOne()).DeadLetterReason);
        Assert.Empty(await topic.DeadLetters("second").PeekMessagesAsync(10));
        Assert.Equal("body", (await second.ReceiveOne()).Body.ToString());
    }

    [Fact]
    public async Task ASubscriptionWithSessionsIsReceivedSessionBySession()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("sessions", configure: options => options.RequiresSession = true);
        await topic.Send(new("one") { SessionId = "a" }, new("two") { SessionId = "b" },
            new("three") { SessionId = "a" });
        await using var receiver = await topic.Client.AcceptSessionAsync(topic.Name, "sessions", "a");
        Assert.Equal(["one", "three"], (await receiver.ReceiveMany(2)).Bodies());
    }

    [Fact]
    public async Task ACopyWithoutASessionIsDeadLetteredWhereSessionsAreRequired()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("sessions", configure: options => options.RequiresSession = true);
        await topic.Send(new ServiceBusMessage("body"));
        Assert.Equal("Session id is null.", (await topic.DeadLetters("sessions").ReceiveOne()).DeadLetterReason);
    }

    [Fact]
    public async Task AMessageWhoseFilterFailsIsDeadLettered()
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("some", new SqlRuleFilter("amount / 0 = 1"));
        await topic.Send(new ServiceBusMessage("body") { ApplicationProperties = { ["amount"] = 1 } });
        Assert.Equal("FilterException", (await topic.DeadLetters("some").ReceiveOne()).DeadLetterReason);
        Assert.Empty(await subscription.PeekMessagesAsync(10));
    }

    [Fact]
    public async Task ACopyThatIsAbandonedTooOftenIsDeadLettered()
    {
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("some", configure: options => options.MaxDeliveryCount = 2);
        await topic.Send(new ServiceBusMessage("body"));
        for (var delivery = 1; delivery <= 2; delivery++)
        {
            var received = await subscription.ReceiveOne();
            Assert.Equal(delivery, received.DeliveryCount);
            await subscription.AbandonMessageAsync(received);
        }
        Assert.Equal("MaxDeliveryCountExceeded", (await topic.DeadLetters("some").ReceiveOne()).DeadLetterReason);
        Assert.Empty(await subscription.PeekMessagesAsync(10));
    }
}
