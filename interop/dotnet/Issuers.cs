using Azure.Core;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>
/// Programs with tokens of a configured issuer: a provider of OpenID Connect, as in production. A token has the rights
/// that the broker's grants give to its claims. What is refused leaves everything as it was.
/// (docs/spec/amqp.md#2.8, docs/spec/admin.md#2.3)
/// </summary>
public class Issuers
{
    /// <summary>The issuer whose keys are in a file. It has the usual audience and the usual grants.</summary>
    private const string FileIssuer = "https://keys.example";
    private const string UsualAudience = "https://servicebus.azure.net";
    private const string Orders = TrustingBroker.Orders;
    private const string Target = TrustingBroker.Target;

    /// <summary>Users and programs, by what they claim.</summary>
    private static readonly Dictionary<string, Claims> Claimants = new()
    {
        ["writer"] = new() { ["roles"] = new[] { "Orders.Write" } },
        ["reader"] = new() { ["scp"] = "openid orders.read" },
        ["operator"] = new() { ["groups"] = new[] { "everyone", "operators" } },
        ["worker"] = new() { ["sub"] = "worker" },
        ["owner by Azure's name"] = new() { ["roles"] = new[] { "Azure Service Bus Data Owner" } },
        ["subject as a role"] = new() { ["roles"] = new[] { "worker" } },
        ["nobody"] = [],
    };

    [Theory]
    [InlineData("RS256", ServiceBusTransportType.AmqpTcp)]
    [InlineData("RS256", ServiceBusTransportType.AmqpWebSockets)]
    [InlineData("ES256", ServiceBusTransportType.AmqpTcp)]
    [InlineData("ES256", ServiceBusTransportType.AmqpWebSockets)]
    public async Task ProgramsWithTokensOfAProviderSendAndReceive(string algorithm, ServiceBusTransportType transport)
    {
        await using var world = await TrustingBroker.Start();
        var writer = world.Client(world.Provider.Credential(Claimants["writer"], algorithm), transport);
        await writer.CreateSender(Orders).SendMessageAsync(new("by a token"));
        var reader = world.Client(world.Provider.Credential(Claimants["reader"], algorithm), transport);
        var receiver = reader.CreateReceiver(Orders);
        var received = await receiver.ReceiveOne();
        Assert.Equal("by a token", received.Body.ToString());
        await receiver.RenewMessageLockAsync(received);
        await receiver.CompleteMessageAsync(received);
        await AssertHolds(world);
    }

    /// <summary>The queue holds these messages alone, and none of their deliveries has ended.</summary>
    private static async Task AssertHolds(TrustingBroker world, params string[] bodies)
    {
        var left = await world.Client(world.Operator).CreateReceiver(Orders).PeekMessagesAsync(250);
        Assert.Equal(bodies, left.Bodies());
        Assert.All(left, message => Assert.Equal(0, message.DeliveryCount));
    }

    private static Task SendUntouched(TrustingBroker world) =>
        world.Client(world.Operator).CreateSender(Orders).SendMessageAsync(new("untouched"));

    [Fact]
    public async Task ASubjectHasItsRightsInEveryQueue()
    {
        await using var world = await TrustingBroker.Start();
        var client = world.Client(world.Provider.Credential(Claimants["worker"]));
        foreach (var queue in new[] { Orders, Target })
        {
            await client.CreateSender(queue).SendMessageAsync(new(queue));
            Assert.Equal(queue, (await client.CreateReceiver(queue).Take()).Body.ToString());
        }
    }

    [Theory]
    [InlineData("writer", "receive", Orders)]
    [InlineData("writer", "peek", Orders)]
    [InlineData("reader", "send", Orders)]
    [InlineData("reader", "schedule", Orders)]
    [InlineData("writer", "send", Target)]
    [InlineData("reader", "receive", Target)]
    [InlineData("owner by Azure's name", "send", Orders)]
    [InlineData("subject as a role", "receive", Orders)]
    [InlineData("nobody", "send", Orders)]
    public async Task ATokenHasNoRightBesideItsGrants(string claimant, string operation, string queue)
    {
        await using var world = await TrustingBroker.Start();
        await SendUntouched(world);
        var client = world.Client(world.Provider.Credential(Claimants[claimant]));
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => Refusals.Perform(operation, client, queue));
        await AssertHolds(world, "untouched");
    }

    public static TheoryData<string, string, int> Bad() => new()
    {
        { "unknown issuer", "IssuerNotFound", 40109 },
        { "another key of that name", "InvalidSignature", 40103 },
        { "key of another issuer", "InvalidSignature", 40103 },
        { "wrong audience", "InvalidAudience", 40104 },
        { "expired", "ExpiredToken", 40106 },
        { "not yet", "InvalidToken", 40100 },
        { "unsigned", "MalformedToken", 40105 },
        { "no JWT", "MalformedToken", 40105 },
    };

    /// <summary>That of an operator, but for what its name says.</summary>
    private static TokenCredential BadCredential(string name, TrustingBroker world)
    {
        var (issuer, all) = (world.Provider.Issuer, Claimants["operator"]);
        Func<Claims, string> sign = world.Provider.Keys["RS256"].Token;
        long Minutes(int past) => DateTimeOffset.UtcNow.AddMinutes(past).ToUnixTimeSeconds();
        return name switch
        {
            "unknown issuer" => new ClaimsCredential(sign, "https://evil.example", all),
            "another key of that name" => new ClaimsCredential(SigningKey.Rsa("first").Token, issuer, all),
            "key of another issuer" => new ClaimsCredential(sign, FileIssuer, new() { ["roles"] = new[] { "Manage" } }),
            "wrong audience" => new ClaimsCredential(sign, issuer, all.And(new() { ["aud"] = UsualAudience })),
            "expired" => new ClaimsCredential(sign, issuer, all.And(new() { ["exp"] = Minutes(-10) })),
            "not yet" => new ClaimsCredential(sign, issuer, all.And(new() { ["nbf"] = Minutes(10) })),
            "unsigned" => new ClaimsCredential(SigningKey.Unsigned, issuer, all),
            "no JWT" => new ClaimsCredential(_ => "an-opaque-token", issuer, all),
            _ => throw new ArgumentException(name),
        };
    }

    [Theory]
    [MemberData(nameof(Bad))]
    public async Task ATokenThatIsNotGoodIsRefusedAndNothingChanges(string name, string text, int subCode)
    {
        await using var world = await TrustingBroker.Start();
        await SendUntouched(world);
        var credential = BadCredential(name, world);
        foreach (var operation in new[] { "send", "receive", "peek", "schedule" })
        {
            var refusal = await Assert.ThrowsAsync<UnauthorizedAccessException>(
                () => Refusals.Perform(operation, world.Client(credential), Orders));
            Assert.Contains(text, refusal.Message);
        }
        await AssertAdministersNothing(world, credential, $"SubCode={subCode}. {text}");
        await AssertHolds(world, "untouched");
    }

    private static async Task AssertAdministersNothing(TrustingBroker world, TokenCredential credential, string text)
    {
        var administration = world.Administration(credential);
        foreach (var operation in new Func<Task>[]
        {
            () => administration.CreateQueueAsync("denied"),
            () => administration.GetQueueAsync(Orders),
            () => administration.DeleteQueueAsync(Orders),
        })
        {
            var refusal = await Assert.ThrowsAsync<UnauthorizedAccessException>(operation);
            Assert.Contains(text, refusal.Message);
        }
        var manager = world.Administration(world.Operator);
        Assert.False(await manager.QueueExistsAsync("denied"));
        Assert.True(await manager.QueueExistsAsync(Orders));
    }

    [Fact]
    public async Task ATokenWithoutManageAdministersNothing()
    {
        await using var world = await TrustingBroker.Start();
        await AssertAdministersNothing(world, world.Provider.Credential(Claimants["worker"]), "Manage");
    }

    [Theory]
    [InlineData("RS256")]
    [InlineData("ES256")]
    public async Task AProgramWithATokenOfAProviderAdministers(string algorithm)
    {
        await using var world = await TrustingBroker.Start();
        var administration = world.Administration(world.Provider.Credential(Claimants["operator"], algorithm));
        await administration.CreateQueueAsync(new CreateQueueOptions("by-a-token") { MaxDeliveryCount = 7 });
        var queue = (await administration.GetQueueAsync("by-a-token")).Value;
        queue.MaxDeliveryCount = 8;
        await administration.UpdateQueueAsync(queue);
        Assert.Equal(8, (await administration.GetQueueAsync("by-a-token")).Value.MaxDeliveryCount);
        await administration.CreateTopicAsync("events-by-a-token");
        await administration.CreateSubscriptionAsync("events-by-a-token", "all");
        Assert.True(await administration.SubscriptionExistsAsync("events-by-a-token", "all"));
        await administration.DeleteTopicAsync("events-by-a-token");
        await administration.DeleteQueueAsync("by-a-token");
        Assert.False(await administration.QueueExistsAsync("by-a-token"));
    }

    [Fact]
    public async Task KeysAreRotatedWithoutARestart()
    {
        await using var world = await TrustingBroker.Start();
        var second = SigningKey.Rsa("its-successor");
        var claims = new Claims { ["roles"] = new[] { "Azure Service Bus Data Sender" }, ["aud"] = UsualAudience };
        // Whether a send is refused for the signature of its token.
        async Task<bool> IsRefused(SigningKey key)
        {
            await using var client = world.Broker.NewClient(new ClaimsCredential(key.Token, FileIssuer, claims));
            try
            {
                await client.CreateSender(Orders).SendMessageAsync(new("body"));
                return false;
            }
            catch (Exception failure)
            {
                // A link that stands when its key is withdrawn is detached, which is another refusal.
                return failure.Message.Contains("InvalidSignature");
            }
        }
        var bystander = world.Client(world.Provider.Credential(Claimants["worker"])).CreateSender(Orders);
        await bystander.SendMessageAsync(new("before"));
        Assert.False(await IsRefused(world.First));
        Assert.True(await IsRefused(second));
        world.WriteKeys(world.First, second);
        await Receivers.Eventually(async () => !await IsRefused(second));
        Assert.False(await IsRefused(world.First));
        world.WriteKeys(second);
        await Receivers.Eventually(() => IsRefused(world.First));
        Assert.False(await IsRefused(second));
        // Links with tokens of other keys are kept.
        await bystander.SendMessageAsync(new("after"));
    }

    [Fact]
    public async Task TheDevelopmentKeyIsNotValidBesideAnIssuer()
    {
        await using var world = await TrustingBroker.Start();
        var key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;";
        Assert.DoesNotContain("SharedAccessKey", world.Broker.ConnectionString);
        var withKey = new Broker(world.Broker.ConnectionString
            .Replace("UseDevelopmentEmulator", $"{key}UseDevelopmentEmulator"));
        await using var client = withKey.NewClient();
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => Refusals.Perform("send", client, Orders));
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => withKey.Administration.GetQueueAsync(Orders));
        await AssertHolds(world);
    }
}
