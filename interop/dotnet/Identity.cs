using System.Diagnostics;
using System.Text.RegularExpressions;
using Azure.Core;
using Azure.Identity;

namespace Railbus.Interop;

/// <summary>
/// Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
/// that <c>railbus identity env</c> prints, and the clients take its tokens. Nothing in the program names Railbus.
/// </summary>
public class Identity
{
    private static readonly Lazy<TokenCredential> Credential = new(() =>
    {
        foreach (var (name, value) in Variables())
        {
            Environment.SetEnvironmentVariable(name, value);
        }
        return new DefaultAzureCredential();
    });

    /// <summary>What <c>railbus identity env</c> says, by name.</summary>
    private static Dictionary<string, string> Variables()
    {
        var program = Environment.GetEnvironmentVariable("RAILBUS_BIN")
            ?? throw new InvalidOperationException("RAILBUS_BIN names no program");
        var listen = $"127.0.0.1:{Broker.OfTheRun.Authority.Split(':')[1]}";
        var start = new ProcessStartInfo(program, ["identity", "env", "--listen", listen])
        {
            RedirectStandardOutput = true,
        };
        using var process = Process.Start(start) ?? throw new InvalidOperationException($"{program} did not start");
        var printed = process.StandardOutput.ReadToEnd();
        var found = Regex.Matches(printed, @"^export (\w+)=(\S+)$", RegexOptions.Multiline)
            .ToDictionary(line => line.Groups[1].Value, line => line.Groups[2].Value);
        Assert.Equal(["IDENTITY_ENDPOINT", "IDENTITY_HEADER"], found.Keys.Order());
        return found;
    }

    [Theory]
    [InlineData(ServiceBusTransportType.AmqpTcp)]
    [InlineData(ServiceBusTransportType.AmqpWebSockets)]
    public async Task AProgramWithoutAConnectionStringSendsAndReceives(ServiceBusTransportType transport)
    {
        await using var queue = await Queue.Create();
        await using var client = Broker.OfTheRun.NewClient(Credential.Value, transport);
        await client.CreateSender(queue.Name).SendMessageAsync(new("without a key"));
        var receiver = client.CreateReceiver(queue.Name);
        var received = await receiver.ReceiveOne();
        Assert.Equal("without a key", received.Body.ToString());
        await receiver.RenewMessageLockAsync(received);
        await receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task ClientCredentialsGetAToken()
    {
        var options = new ClientSecretCredentialOptions
        {
            AuthorityHost = new Uri($"https://{Broker.OfTheRun.Authority}"),
            DisableInstanceDiscovery = true,
        };
        var credential = new ClientSecretCredential("any-tenant", "any-client", "SAS_KEY_VALUE", options);
        await using var queue = await Queue.Create();
        await using var client = Broker.OfTheRun.NewClient(credential);
        await client.CreateSender(queue.Name).SendMessageAsync(new("by client credentials"));
        Assert.Equal("by client credentials", (await client.CreateReceiver(queue.Name).Take()).Body.ToString());
    }

    [Fact]
    public async Task AWrongSecretGetsNoToken()
    {
        var options = new ClientSecretCredentialOptions
        {
            AuthorityHost = new Uri($"https://{Broker.OfTheRun.Authority}"),
            DisableInstanceDiscovery = true,
        };
        var credential = new ClientSecretCredential("any-tenant", "any-client", "WRONG_KEY_VALUE", options);
        await Assert.ThrowsAsync<AuthenticationFailedException>(async () => await credential.GetTokenAsync(
            new TokenRequestContext(["https://servicebus.azure.net/.default"]), default));
    }

    [Fact]
    public async Task QueuesAreAdministeredWithoutAConnectionString()
    {
        var administration = Broker.OfTheRun.NewAdministration(Credential.Value);
        var name = Queue.NewName();
        await administration.CreateQueueAsync(name);
        Assert.True(await Broker.OfTheRun.Administration.QueueExistsAsync(name));
        await administration.DeleteQueueAsync(name);
    }

    [Fact]
    public async Task ATokenForAnotherServiceIsRefused()
    {
        await using var queue = await Queue.Create();
        await using var client = Broker.OfTheRun.NewClient(new OtherAudience(Credential.Value));
        var sender = client.CreateSender(queue.Name);
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => sender.SendMessageAsync(new("refused")));
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AdministrationWithATokenForAnotherServiceIsRefused()
    {
        var administration = Broker.OfTheRun.NewAdministration(new OtherAudience(Credential.Value));
        var name = Queue.NewName();
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => administration.CreateQueueAsync(name));
        Assert.False(await Broker.OfTheRun.Administration.QueueExistsAsync(name));
    }

    private sealed class OtherAudience(TokenCredential credential) : TokenCredential
    {
        private static readonly TokenRequestContext Vault = new(["https://vault.azure.net/.default"]);

        public override AccessToken GetToken(TokenRequestContext asked, CancellationToken cancel) =>
            credential.GetToken(Vault, cancel);

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext asked, CancellationToken cancel) =>
            credential.GetTokenAsync(Vault, cancel);
    }
}
