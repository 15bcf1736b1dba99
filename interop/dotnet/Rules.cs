using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Rules over AMQP: the rule manager of a subscription.</summary>
public class Rules
{
    [Fact]
    public async Task ANewSubscriptionHasTheDefaultRule()
    {
        await using var topic = await Topic.Create();
        await Broker.OfTheRun.Administration.CreateSubscriptionAsync(topic.Name, "all");
        var rule = Assert.Single(await All(topic.Client.CreateRuleManager(topic.Name, "all")));
        Assert.Equal(("$Default", new TrueRuleFilter()), (rule.Name, rule.Filter));
    }

    public static TheoryData<RuleFilter> Filters() =>
    [
        new SqlRuleFilter("amount > 100 AND sys.Label LIKE 'order%'"),
        new CorrelationRuleFilter
        {
            CorrelationId = "correlation", MessageId = "id", To = "to", ReplyTo = "reply-to", Subject = "subject",
            SessionId = "session", ReplyToSessionId = "reply-to-session", ContentType = "text/plain",
            ApplicationProperties =
            {
                ["text"] = "value", ["int"] = 5, ["long"] = 5L, ["flag"] = true, ["double"] = 1.5,
            },
        },
    ];

    [Theory]
    [MemberData(nameof(Filters), DisableDiscoveryEnumeration = true)]
    public async Task ARuleIsListedAsItWasCreated(RuleFilter filter)
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("some");
        await using var rules = topic.Client.CreateRuleManager(topic.Name, "some");
        var action = new SqlRuleAction("SET priority = 'high'");
        await rules.CreateRuleAsync(new CreateRuleOptions("new", filter) { Action = action });
        var created = Assert.Single(await All(rules), rule => rule.Name == "new");
        Assert.Equal((filter, action), (created.Filter, created.Action));
    }

    [Fact]
    public async Task RulesDecideWhatIsPublishedFromThenOn()
    {
        await using var topic = await Topic.Create();
        var receiver = await topic.Subscribe("some");
        await using var rules = topic.Client.CreateRuleManager(topic.Name, "some");
        await rules.DeleteRuleAsync("rule");
        await topic.Send(new ServiceBusMessage("without a rule") { Subject = "red" });
        await rules.CreateRuleAsync("red", new CorrelationRuleFilter { Subject = "red" });
        await topic.Send(new("blue") { Subject = "blue" }, new("red") { Subject = "red" });
        Assert.Equal(["red"], (await receiver.PeekMessagesAsync(10)).Bodies());
    }

    [Fact]
    public async Task ARuleThatExistsIsNotCreatedAgain()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("all");
        await using var rules = topic.Client.CreateRuleManager(topic.Name, "all");
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => rules.CreateRuleAsync("RULE", new TrueRuleFilter()));
    }

    [Fact]
    public async Task ARuleThatIsNotThereIsNotDeleted()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("all");
        await using var rules = topic.Client.CreateRuleManager(topic.Name, "all");
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => rules.DeleteRuleAsync("other"));
    }

    [Fact]
    public async Task ABadExpressionIsRefusedAndTheRulesStay()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("all");
        await using var rules = topic.Client.CreateRuleManager(topic.Name, "all");
        await Assert.ThrowsAnyAsync<ArgumentException>(
            () => rules.CreateRuleAsync("bad", new SqlRuleFilter("amount >")));
        Assert.Equal(["rule"], (await All(rules)).Select(rule => rule.Name));
    }

    private static async Task<List<RuleProperties>> All(ServiceBusRuleManager rules)
    {
        var all = new List<RuleProperties>();
        await foreach (var rule in rules.GetRulesAsync())
        {
            all.Add(rule);
        }
        return all;
    }
}
