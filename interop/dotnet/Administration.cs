using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Administration over HTTP: queues, topics, subscriptions and rules, with all their properties.</summary>
public class Administration
{
    private const string FirstKey = "5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0=";
    private const string SecondKey = "rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY=";
    private static readonly ServiceBusAdministrationClient Client = Broker.OfTheRun.Administration;

    [Fact]
    public async Task EveryPropertyOfAQueueComesBack()
    {
        var options = new CreateQueueOptions(Queue.NewName())
        {
            LockDuration = TimeSpan.FromSeconds(17),
            MaxSizeInMegabytes = 2048,
            RequiresDuplicateDetection = true,
            RequiresSession = true,
            DefaultMessageTimeToLive = TimeSpan.FromHours(5),
            AutoDeleteOnIdle = TimeSpan.FromMinutes(50),
            DeadLetteringOnMessageExpiration = true,
            DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(3),
            MaxDeliveryCount = 7,
            EnableBatchedOperations = false,
            Status = EntityStatus.SendDisabled,
            UserMetadata = "of a test",
            MaxMessageSizeInKilobytes = 2000,
        };
        options.AuthorizationRules.Add(
            new SharedAccessAuthorizationRule("sender", FirstKey, SecondKey, [AccessRights.Send]));
        QueueProperties created = await Client.CreateQueueAsync(options);
        Assert.Equal(options, new CreateQueueOptions(created));
        Assert.Equal(created, (await Client.GetQueueAsync(options.Name)).Value);
        await Client.DeleteQueueAsync(options.Name);
    }

    [Fact]
    public async Task EveryPropertyOfATopicComesBack()
    {
        var options = new CreateTopicOptions(Queue.NewName())
        {
            DefaultMessageTimeToLive = TimeSpan.FromHours(5),
            AutoDeleteOnIdle = TimeSpan.FromMinutes(50),
            MaxSizeInMegabytes = 2048,
            RequiresDuplicateDetection = true,
            DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(3),
            Status = EntityStatus.SendDisabled,
            SupportOrdering = true,
            EnableBatchedOperations = false,
            UserMetadata = "of a test",
            MaxMessageSizeInKilobytes = 2000,
        };
        TopicProperties created = await Client.CreateTopicAsync(options);
        Assert.Equal(options, new CreateTopicOptions(created));
        Assert.Equal(created, (await Client.GetTopicAsync(options.Name)).Value);
        await Client.DeleteTopicAsync(options.Name);
    }

    [Fact]
    public async Task EveryPropertyOfASubscriptionComesBack()
    {
        await using var topic = await Topic.Create();
        var options = new CreateSubscriptionOptions(topic.Name, "all")
        {
            LockDuration = TimeSpan.FromSeconds(17),
            RequiresSession = true,
            DefaultMessageTimeToLive = TimeSpan.FromHours(5),
            AutoDeleteOnIdle = TimeSpan.FromMinutes(50),
            DeadLetteringOnMessageExpiration = true,
            EnableDeadLetteringOnFilterEvaluationExceptions = false,
            MaxDeliveryCount = 7,
            Status = EntityStatus.ReceiveDisabled,
            EnableBatchedOperations = false,
            UserMetadata = "of a test",
        };
        SubscriptionProperties created = await Client.CreateSubscriptionAsync(options);
        Assert.Equal(options, new CreateSubscriptionOptions(created));
        Assert.Equal(created, (await Client.GetSubscriptionAsync(topic.Name, "all")).Value);
    }

    public static TheoryData<RuleFilter> Filters() =>
    [
        new TrueRuleFilter(), new FalseRuleFilter(),
        new SqlRuleFilter("amount > @least") { Parameters = { ["@least"] = 5L, ["@text"] = "value" } },
        new CorrelationRuleFilter
        {
            CorrelationId = "correlation", MessageId = "id", To = "to", ReplyTo = "reply-to", Subject = "subject",
            SessionId = "session", ReplyToSessionId = "reply-to-session", ContentType = "text/plain",
            ApplicationProperties =
            {
                ["text"] = "value", ["int"] = 5, ["long"] = 5L, ["flag"] = true, ["double"] = 1.5,
                ["time"] = new DateTime(2026, 11, 5, 6, 7, 8, DateTimeKind.Utc), ["span"] = TimeSpan.FromSeconds(5),
            },
        },
    ];

    [Theory]
    [MemberData(nameof(Filters), DisableDiscoveryEnumeration = true)]
    public async Task AFilterComesBackAsItWasCreated(RuleFilter filter)
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("some");
        var options = new CreateRuleOptions("new", filter)
        {
            Action = new SqlRuleAction("SET a = @b") { Parameters = { ["@b"] = 7 } },
        };
        RuleProperties created = await Client.CreateRuleAsync(topic.Name, "some", options);
        Assert.Equal(options, new CreateRuleOptions(created));
        Assert.Equal(created, (await Client.GetRuleAsync(topic.Name, "some", "new")).Value);
    }

    [Fact]
    public async Task AQueueIsUpdated()
    {
        await using var queue = await Queue.Create();
        await using var target = await Queue.Create();
        QueueProperties changed = await Client.GetQueueAsync(queue.Name);
        changed.MaxDeliveryCount = 5;
        changed.ForwardTo = target.Name;
        QueueProperties updated = await Client.UpdateQueueAsync(changed);
        Assert.Equal((5, $"/{target.Name}"), (updated.MaxDeliveryCount, new Uri(updated.ForwardTo).AbsolutePath));
        Assert.Equal(updated, (await Client.GetQueueAsync(queue.Name)).Value);
    }

    [Fact]
    public async Task ATopicItsSubscriptionAndItsRuleAreUpdated()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("some");
        TopicProperties changed = await Client.GetTopicAsync(topic.Name);
        changed.DefaultMessageTimeToLive = TimeSpan.FromMinutes(5);
        await Client.UpdateTopicAsync(changed);
        SubscriptionProperties subscription = await Client.GetSubscriptionAsync(topic.Name, "some");
        subscription.LockDuration = TimeSpan.FromSeconds(30);
        await Client.UpdateSubscriptionAsync(subscription);
        RuleProperties rule = await Client.GetRuleAsync(topic.Name, "some", "rule");
        rule.Filter = new SqlRuleFilter("a = 1");
        await Client.UpdateRuleAsync(topic.Name, "some", rule);
        Assert.Equal(changed, (await Client.GetTopicAsync(topic.Name)).Value);
        Assert.Equal(subscription, (await Client.GetSubscriptionAsync(topic.Name, "some")).Value);
        Assert.Equal(rule, (await Client.GetRuleAsync(topic.Name, "some", "rule")).Value);
    }

    [Fact]
    public async Task DeletedEntitiesAreGone()
    {
        var name = Queue.NewName();
        await Client.CreateTopicAsync(name);
        await Client.CreateSubscriptionAsync(name, "some");
        await Client.CreateRuleAsync(name, "some", new CreateRuleOptions("rule"));
        await Client.DeleteRuleAsync(name, "some", "rule");
        Assert.False(await Client.RuleExistsAsync(name, "some", "rule"));
        await Client.DeleteSubscriptionAsync(name, "some");
        Assert.False(await Client.SubscriptionExistsAsync(name, "some"));
        await Client.DeleteTopicAsync(name);
        Assert.False(await Client.TopicExistsAsync(name));
    }

    [Fact]
    public async Task APartitionedEntityIsShownAsSuch()
    {
        await using var queue = await Queue.Create(options =>
        {
            options.EnablePartitioning = true;
            options.MaxSizeInMegabytes = 1024;
        });
        QueueProperties shown = await Client.GetQueueAsync(queue.Name);
        Assert.Equal((true, 16 * 1024), (shown.EnablePartitioning, shown.MaxSizeInMegabytes));
        await using var topic = await Topic.Create(options => options.EnablePartitioning = true);
        TopicProperties topicShown = await Client.GetTopicAsync(topic.Name);
        Assert.True(topicShown.EnablePartitioning);
    }

    [Fact]
    public async Task OfManyWhoCreateTheSameOneSucceeds()
    {
        var name = Queue.NewName();
        async Task<bool> Create()
        {
            try
            {
                await Client.CreateQueueAsync(name);
                return true;
            }
            catch (ServiceBusException exists)
            {
                Assert.Equal(ServiceBusFailureReason.MessagingEntityAlreadyExists, exists.Reason);
                return false;
            }
        }

        var outcomes = await Task.WhenAll(Enumerable.Range(0, 8).Select(_ => Task.Run(Create)));
        await Client.DeleteQueueAsync(name);
        Assert.Single(outcomes, created => created);
    }

    [Fact]
    public async Task AQueueIsGoneWhenItWasNotUsedForItsTime()
    {
        await using var broker = await OwnBroker.WithVirtualClock();
        var name = Queue.NewName();
        var options = new CreateQueueOptions(name) { AutoDeleteOnIdle = TimeSpan.FromMinutes(5) };
        await broker.Administration.CreateQueueAsync(options);
        await using var client = broker.NewClient();
        await using var sender = client.CreateSender(name);
        await broker.Advance("PT4M");
        await sender.SendMessageAsync(new("body"));
        await broker.Advance("PT4M");
        await using (var receiver = client.CreateReceiver(name))
        {
            await receiver.Take();
        }
        await broker.Advance("PT4M");
        Assert.True(await broker.Administration.QueueExistsAsync(name));
        await broker.Advance("PT1M");
        Assert.False(await broker.Administration.QueueExistsAsync(name));
    }
}
