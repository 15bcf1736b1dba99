using System.Net.Http.Headers;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Refusals: what is missing, forbidden, closed or full, each with the error of this SDK for it.</summary>
public class Refusals
{
    public static TheoryData<string> Operations() => ["send", "receive", "peek", "schedule"];

    internal static Task Perform(string operation, ServiceBusClient client, string name) => operation switch
    {
        "send" => client.CreateSender(name).SendMessageAsync(new("body")),
        "receive" => client.CreateReceiver(name).ReceiveMessageAsync(),
        "peek" => client.CreateReceiver(name).PeekMessageAsync(),
        _ => client.CreateSender(name).ScheduleMessageAsync(new("body"), DateTimeOffset.UtcNow.AddDays(1)),
    };

    [Theory]
    [MemberData(nameof(Operations))]
    public async Task AMissingQueueIsNotFound(string operation)
    {
        await using var client = Broker.OfTheRun.NewClient();
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Perform(operation, client, Queue.NewName()));
    }

    [Theory]
    [MemberData(nameof(Operations))]
    public async Task AWrongKeyIsUnauthorized(string operation)
    {
        await using var queue = await Queue.Create();
        await using var client = new Broker(WithWrongKey()).NewClient();
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => Perform(operation, client, queue.Name));
    }

    private static string WithWrongKey() =>
        Broker.OfTheRun.ConnectionString.Replace("SAS_KEY_VALUE", "WRONG_KEY_VALUE");

    [Fact]
    public async Task AWrongKeyIsUnauthorizedToAdminister()
    {
        var administration = new Broker(WithWrongKey()).Administration;
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => administration.GetQueueAsync("queue"));
    }

    [Theory]
    [InlineData("send", "SendDisabled", true)]
    [InlineData("receive", "SendDisabled", false)]
    [InlineData("send", "ReceiveDisabled", false)]
    [InlineData("receive", "ReceiveDisabled", true)]
    [InlineData("send", "Disabled", true)]
    [InlineData("receive", "Disabled", true)]
    public async Task ADisabledQueueRefusesWhatItsStatusForbids(string operation, string status, bool refused)
    {
        await using var queue = await Queue.Create();
        await queue.Send("body");
        QueueProperties properties = await Broker.OfTheRun.Administration.GetQueueAsync(queue.Name);
        properties.Status = new EntityStatus(status);
        await Broker.OfTheRun.Administration.UpdateQueueAsync(properties);
        await using var client = Broker.OfTheRun.NewClient();
        var performed = Perform(operation, client, queue.Name);
        if (refused)
        {
            await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityDisabled, () => performed);
        }
        else
        {
            await performed;
        }
    }

    [Fact]
    public async Task ARefusalLeavesOtherConnectionsAndTheRestOfItsOwnAlone()
    {
        await using var queue = await Queue.Create();
        await queue.Send("before");
        await using var client = Broker.OfTheRun.NewClient();
        var received = await client.CreateReceiver(queue.Name).ReceiveOne();
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => client.CreateSender(Queue.NewName()).SendMessageAsync(new("refused")));
        await client.CreateReceiver(queue.Name).CompleteMessageAsync(received);
        await client.CreateSender(queue.Name).SendMessageAsync(new("after"));
        Assert.Equal("after", (await queue.Receiver.Take()).Body.ToString());
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ASubscriptionTakesNoMessagesButFromItsTopic()
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("all");
        var sender = topic.Client.CreateSender($"{topic.Name}/Subscriptions/all");
        await Assert.ThrowsAsync<InvalidOperationException>(() => sender.SendMessageAsync(new("body")));
    }

    [Fact]
    public async Task ATopicHasNoMessagesToReceive()
    {
        await using var topic = await Topic.Create();
        await Assert.ThrowsAsync<InvalidOperationException>(topic.Client.CreateReceiver(topic.Name).ReceiveOne);
    }

    [Fact]
    public async Task AFullQueueExceedsItsQuota()
    {
        await using var queue = await Queue.Create();
        await SetSizeToOneMegabyte(queue.Name);
        var megabyte = new byte[900 << 10];
        await queue.Send(new ServiceBusMessage(megabyte));
        await Receivers.AssertFails(ServiceBusFailureReason.QuotaExceeded,
            () => queue.Send(new ServiceBusMessage(megabyte)));
    }

    /// <summary>Sets a size that is too small for the cloud, and so for the administration client.</summary>
    private static async Task SetSizeToOneMegabyte(string queue)
    {
        using var http = new HttpClient();
        var address = $"http://{Broker.OfTheRun.Authority}/$railbus/entities/{queue}";
        var json = new MediaTypeHeaderValue("application/json");
        var change = new StringContent("""{"max-size-in-megabytes": 1}""", json);
        (await http.PatchAsync(address, change)).EnsureSuccessStatusCode();
    }

    [Fact]
    public async Task WhatExistsIsNotCreatedAgain()
    {
        await using var queue = await Queue.Create();
        var administration = Broker.OfTheRun.Administration;
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => administration.CreateQueueAsync(queue.Name));
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => administration.CreateTopicAsync(queue.Name.ToUpperInvariant()));
    }

    [Fact]
    public async Task ASubscriptionAndItsDefaultRuleAreNotCreatedAgain()
    {
        await using var topic = await Topic.Create();
        var administration = Broker.OfTheRun.Administration;
        await administration.CreateSubscriptionAsync(topic.Name, "some");
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => administration.CreateSubscriptionAsync(topic.Name, "some"));
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => administration.CreateRuleAsync(topic.Name, "some", new CreateRuleOptions("$Default")));
    }

    [Fact]
    public async Task WhatMakesNoSenseIsAWrongArgument()
    {
        await using var topic = await Topic.Create();
        await using var queue = await Queue.Create();
        var administration = Broker.OfTheRun.Administration;
        await administration.CreateSubscriptionAsync(topic.Name, "some");
        var unfinished = new CreateRuleOptions("unfinished", new SqlRuleFilter("n >"));
        await Assert.ThrowsAsync<ArgumentException>(
            () => administration.CreateRuleAsync(topic.Name, "some", unfinished));
        var tooSmall = new CreateQueueOptions(Queue.NewName()) { MaxSizeInMegabytes = 5 };
        await Assert.ThrowsAsync<ArgumentException>(() => administration.CreateQueueAsync(tooSmall));

        // What may not change cannot be set in this SDK: these can, and have no such values.
        QueueProperties found = await administration.GetQueueAsync(queue.Name);
        found.MaxSizeInMegabytes = 5;
        await Assert.ThrowsAsync<ArgumentException>(() => administration.UpdateQueueAsync(found));
        Assert.Equal(1024, (await administration.GetQueueAsync(queue.Name)).Value.MaxSizeInMegabytes);
    }

    [Fact]
    public async Task WhatIsNotThereIsNotFound()
    {
        var name = Queue.NewName();
        var administration = Broker.OfTheRun.Administration;
        Task[] operations =
        [
            administration.GetQueueAsync(name), administration.GetTopicAsync(name),
            administration.GetSubscriptionAsync(name, "some"), administration.GetRuleAsync(name, "some", "rule"),
            administration.DeleteQueueAsync(name), administration.CreateSubscriptionAsync(name, "some"),
        ];
        foreach (var operation in operations)
        {
            await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound, () => operation);
        }
        Assert.False(await administration.QueueExistsAsync(name));
    }
}
