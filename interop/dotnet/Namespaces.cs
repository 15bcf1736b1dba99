using System.Net;

namespace Railbus.Interop;

/// <summary>
/// Namespaces: tests that run beside each other on one broker, each in a namespace of its own. The SDK knows only
/// <c>localhost</c>, so the name of the key chooses.
/// </summary>
public class Namespaces
{
    private const int Count = 20;

    private static Task<OwnBroker> Start() => OwnBroker.WithSettings("""
        [[queues]]
        name = "orders"
        """);

    /// <summary>Makes a namespace with the entities of the default one, or with none.</summary>
    private static async Task<Broker> Create(Broker broker, string name, string options = """{"like": "default"}""")
    {
        var (status, body) = await broker.Ask(HttpMethod.Put, $"/namespaces/{name}", options);
        Assert.Equal(HttpStatusCode.Created, status);
        return new((string?)body["connection-string"] ?? throw new InvalidOperationException("no connection string"));
    }

    private static async Task Send(Broker space, params string[] bodies)
    {
        await using var client = space.NewClient();
        await client.CreateSender("orders").SendMessagesAsync(bodies.Select(body => new ServiceBusMessage(body)));
    }

    private static async Task<string[]> Bodies(Broker space)
    {
        await using var client = space.NewClient();
        return (await client.CreateReceiver("orders").PeekMessagesAsync(100)).Bodies();
    }

    [Fact]
    public async Task TestsBesideEachOtherSeeTheirOwnMessages()
    {
        await using var broker = await Start();
        await Task.WhenAll(Enumerable.Range(0, Count).Select(async number =>
        {
            var name = $"beside-{number}";
            var space = await Create(broker, name);
            string[] sent = [.. Enumerable.Range(0, 10).Select(place => $"{name} {place}")];
            await Send(space, sent);
            await using var client = space.NewClient();
            var receiver = client.CreateReceiver("orders");
            var received = await receiver.ReceiveMany(10);
            await Task.WhenAll(received.Select(message => receiver.CompleteMessageAsync(message)));
            Assert.Equal(sent, received.Bodies());
            Assert.Empty(await Bodies(space));
            Assert.Equal(HttpStatusCode.OK, (await broker.Ask(HttpMethod.Delete, $"/namespaces/{name}")).Status);
        }));
        Assert.Empty(await Bodies(broker));
    }

    [Fact]
    public async Task AResetTakesMessagesAwayAndLeavesQueues()
    {
        await using var broker = await Start();
        var (space, other) = (await Create(broker, "reset"), await Create(broker, "other"));
        await Send(space, "gone");
        await Send(other, "kept");
        Assert.Equal(HttpStatusCode.OK, (await broker.Ask(HttpMethod.Post, "/namespaces/reset/reset")).Status);
        Assert.Empty(await Bodies(space));
        Assert.Equal(["kept"], await Bodies(other));
        await Send(space, "new");
        Assert.Equal(["new"], await Bodies(space));
    }

    [Fact]
    public async Task EntitiesAndKeysOfAnotherNamespaceAreNotThere()
    {
        await using var broker = await Start();
        var (inside, empty) = (await Create(broker, "inside"), await Create(broker, "empty", "{}"));
        await Receivers.AssertFails(ServiceBusFailureReason.MessagingEntityNotFound, () => Send(empty, "refused"));
        static string KeyOf(Broker space) =>
            ServiceBusConnectionStringProperties.Parse(space.ConnectionString).SharedAccessKey;
        var stolen = new Broker(empty.ConnectionString.Replace(KeyOf(empty), KeyOf(inside)));
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => Send(stolen, "refused"));
        Assert.Empty(await Bodies(inside));
        await empty.Administration.CreateQueueAsync("orders");
        await Send(empty, "of its own");
        Assert.Equal(["of its own"], await Bodies(empty));
        Assert.Empty(await Bodies(inside));
    }

    [Theory]
    [InlineData("PUT", "/a%2Fb", "{}", HttpStatusCode.BadRequest)]
    [InlineData("PUT", "/A", "{}", HttpStatusCode.BadRequest)]
    [InlineData("PUT", "/new", """{"like": "nobody"}""", HttpStatusCode.NotFound)]
    [InlineData("PUT", "/new", """{"size": 1}""", HttpStatusCode.BadRequest)]
    [InlineData("DELETE", "/nobody", null, HttpStatusCode.NotFound)]
    [InlineData("DELETE", "/default", null, HttpStatusCode.BadRequest)]
    [InlineData("POST", "/nobody/reset", "{}", HttpStatusCode.NotFound)]
    public async Task ABadRequestChangesNothing(string method, string path, string? body, HttpStatusCode expected)
    {
        var broker = Broker.OfTheRun;
        var (status, answer) = await broker.Ask(new HttpMethod(method), "/namespaces" + path, body);
        Assert.Equal(expected, status);
        Assert.NotEqual("", (string?)answer["error"]);
        var (_, all) = await broker.Ask(HttpMethod.Get, "/namespaces");
        Assert.DoesNotContain("\"new\"", all.ToJsonString());
    }
}
