using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Listing over HTTP: which entities there are, what they hold now, and what the namespace is.</summary>
public class Listing
{
    private static readonly ServiceBusAdministrationClient Client = Broker.OfTheRun.Administration;

    [Fact]
    public async Task ListsOfSeveralPagesHaveEveryNameOnce()
    {
        await using var topic = await Topic.Create();
        var names = Enumerable.Range(0, 130).Select(number => $"s-{number}").ToArray();
        foreach (var name in names)
        {
            await Client.CreateSubscriptionAsync(topic.Name, name);
        }
        var listed = new List<string>();
        await foreach (var subscription in Client.GetSubscriptionsAsync(topic.Name))
        {
            listed.Add(subscription.SubscriptionName);
        }
        Assert.Equal(names.Order(), listed.Order());
    }

    [Fact]
    public async Task QueuesAndTopicsAndRulesAreListed()
    {
        await using var queue = await Queue.Create();
        await using var topic = await Topic.Create();
        await topic.Subscribe("some");
        Assert.Single(await All(Client.GetQueuesAsync()), one => one.Name == queue.Name);
        Assert.Single(await All(Client.GetTopicsAsync()), one => one.Name == topic.Name);
        Assert.Equal(["rule"], (await All(Client.GetRulesAsync(topic.Name, "some"))).Select(one => one.Name));
    }

    private static async Task<List<T>> All<T>(Azure.AsyncPageable<T> pages)
        where T : notnull
    {
        var all = new List<T>();
        await foreach (var one in pages)
        {
            all.Add(one);
        }
        return all;
    }

    [Fact]
    public async Task RuntimePropertiesAreThoseOfTheMoment()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new("one"), new("two"), new("dead"));
        await queue.Receiver.ReceiveMany(2);
        await queue.Receiver.DeadLetterMessageAsync(await queue.Receiver.ReceiveOne());
        await queue.Sender.ScheduleMessageAsync(new("scheduled"), DateTimeOffset.UtcNow.AddDays(1));
        QueueRuntimeProperties properties = await Client.GetQueueRuntimePropertiesAsync(queue.Name);
        Assert.Equal((2, 1, 1, 4), (properties.ActiveMessageCount, properties.DeadLetterMessageCount,
            properties.ScheduledMessageCount, properties.TotalMessageCount));
        Assert.InRange(properties.SizeInBytes, 1, 10_000);
        Assert.InRange(properties.AccessedAt, properties.CreatedAt, DateTimeOffset.UtcNow.AddSeconds(1));
    }

    [Fact]
    public async Task ATopicCountsItsSubscriptionsAndTheyTheirMessages()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("all");
        await topic.Subscribe("some", new CorrelationRuleFilter { Subject = "subject" });
        await topic.Send(new("one"), new("two") { Subject = "subject" });
        TopicRuntimeProperties properties = await Client.GetTopicRuntimePropertiesAsync(topic.Name);
        Assert.Equal((2, 1, 1),
            (properties.SubscriptionCount, properties.SqlFilterCount, properties.CorrelationFilterCount));
        SubscriptionRuntimeProperties some = await Client.GetSubscriptionRuntimePropertiesAsync(topic.Name, "some");
        Assert.Equal((1, 0, 1), (some.ActiveMessageCount, some.DeadLetterMessageCount, some.TotalMessageCount));
    }

    [Fact]
    public async Task TheNamespaceSaysWhatItIs()
    {
        NamespaceProperties properties = await Client.GetNamespacePropertiesAsync();
        Assert.Equal(MessagingSku.Premium, properties.MessagingSku);
        Assert.NotEmpty(properties.Name);
    }
}
