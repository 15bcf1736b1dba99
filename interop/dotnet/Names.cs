using System.Net;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Names of entities: which characters they may have and where, and what is said of others.</summary>
public class Names
{
    private const string NotAllowed = "contains character(s) that is not allowed by Service Bus. Entity segments can "
        + "contain only letters, numbers, periods (.), hyphens (-), and underscores (_).";

    private static readonly ServiceBusAdministrationClient Client = Broker.OfTheRun.Administration;

    /// <summary>Names of which every part is unusual; a part that no other test has makes each its own.</summary>
    public static TheoryData<string> NamesOfQueues() =>
        ["a~b*", "-*-", "_*_", ".*.", "*--", "*__", "A*z", "a/b*/c-", "-a-/_*_/.c."];

    [Theory]
    [MemberData(nameof(NamesOfQueues))]
    public async Task AQueueIsCreatedUsedAndListedUnderItsName(string pattern)
    {
        var name = pattern.Replace("*", Guid.NewGuid().ToString("N"));
        Assert.Equal(name, (await Client.CreateQueueAsync(name)).Value.Name);
        await using (var client = Broker.OfTheRun.NewClient())
        {
            await client.CreateSender(name).SendMessageAsync(new("body"));
            Assert.Equal("body", (await client.CreateReceiver(name).Take()).Body.ToString());
        }
        Assert.True(await IsListed(name));
        await Client.DeleteQueueAsync(name);
        Assert.False(await Client.QueueExistsAsync(name));
    }

    private static async Task<bool> IsListed(string name)
    {
        await foreach (var queue in Client.GetQueuesAsync())
        {
            if (queue.Name == name)
            {
                return true;
            }
        }
        return false;
    }

    [Theory]
    [InlineData("-s-", "-r-")]
    [InlineData("_s_", "_r_")]
    [InlineData(".s.", ".r.")]
    [InlineData("s~t", "r-")]
    [InlineData("-", "_")]
    public async Task ASubscriptionAndItsRuleHaveTheirNames(string subscription, string rule)
    {
        await using var topic = await Topic.Create();
        var receiver = await topic.Subscribe(subscription);
        SubscriptionProperties created = await Client.GetSubscriptionAsync(topic.Name, subscription);
        Assert.Equal(subscription, created.SubscriptionName);
        await Client.CreateRuleAsync(topic.Name, subscription, new CreateRuleOptions(rule));
        Assert.Equal(rule, (await Client.GetRuleAsync(topic.Name, subscription, rule)).Value.Name);
        await topic.Send(new ServiceBusMessage("body"));
        Assert.Equal("body", (await receiver.Take()).Body.ToString());
    }

    [Theory]
    [InlineData("a!b")]
    [InlineData("a b")]
    [InlineData("ä")]
    [InlineData("a$b")]
    [InlineData("a,b")]
    public async Task ACharacterThatIsNotAllowedIsRefused(string name)
    {
        await using var topic = await Topic.Create();
        await topic.Subscribe("some");
        await AssertNotAllowed(() => Client.CreateQueueAsync(name));
        await AssertNotAllowed(() => Client.CreateSubscriptionAsync(topic.Name, name));
        await AssertNotAllowed(() => Client.CreateRuleAsync(topic.Name, "some", new CreateRuleOptions(name)));
    }

    private static async Task AssertNotAllowed(Func<Task> create) =>
        Assert.Contains(NotAllowed, (await Assert.ThrowsAnyAsync<ArgumentException>(create)).Message);

    [Fact]
    public async Task ANameOf260CharactersIsAllowedAndNoneOf261()
    {
        var name = Queue.NewName().PadRight(260, 'x');
        await Client.CreateQueueAsync(name);
        Assert.True(await Client.QueueExistsAsync(name));
        await Client.DeleteQueueAsync(name);
        Assert.Equal(HttpStatusCode.BadRequest, (await Create(name + "x")).Status);
    }

    [Theory]
    [InlineData(".")]
    [InlineData("..")]
    [InlineData("a/%2E%2E/b")]
    [InlineData("a/%2E/b")]
    [InlineData("a//b")]
    [InlineData("a!b")]
    [InlineData("%C3%A4")]
    public async Task ASegmentThatIsNoNameIsRefused(string path)
    {
        var (status, text) = await Create(path);
        Assert.Equal(HttpStatusCode.BadRequest, status);
        Assert.Contains(NotAllowed, text);
        Assert.Contains("SubCode=40000. ", text);
        Assert.Contains($"/{path}?api-version=2021-05'", text);
    }

    /// <summary>Asks for a queue without the SDK, which puts addresses right before it sends them.</summary>
    private static async Task<(HttpStatusCode Status, string Text)> Create(string path)
    {
        using var http = new HttpClient();
        var exactly = new UriCreationOptions { DangerousDisablePathAndQueryCanonicalization = true };
        var address = new Uri($"http://{Broker.OfTheRun.Authority}/{path}?api-version=2021-05", exactly);
        const string Entry = """
            <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
            <QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/>
            </content></entry>
            """;
        using var request = new HttpRequestMessage(HttpMethod.Put, address) { Content = new StringContent(Entry) };
        request.Headers.Authorization = Broker.OfTheRun.Signature();
        using var answer = await http.SendAsync(request);
        return (answer.StatusCode, await answer.Content.ReadAsStringAsync());
    }

    [Fact]
    public async Task ALoneNameOfTheSystemThatIsNoneIsNotFound()
    {
        Assert.False(await Client.QueueExistsAsync("$nothing"));
        Assert.False(await Client.TopicExistsAsync("$nothing"));
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Client.GetQueueAsync("$nothing"));
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Client.GetTopicAsync("$nothing"));
    }

    [Fact]
    public async Task ALoneNameOfTheSystemIsNotCreated() =>
        await Assert.ThrowsAnyAsync<ArgumentException>(() => Client.CreateQueueAsync("$nothing"));
}
