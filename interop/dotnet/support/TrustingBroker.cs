using Azure.Core;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>
/// A broker that trusts a provider, and keys in a file; and the provider. Its authority is one that <c>run</c> has made.
/// It has the queues <c>orders</c> and <c>target</c>.
/// </summary>
internal sealed class TrustingBroker : IAsyncDisposable
{
    public const string Orders = "orders";
    public const string Target = "target";

    private readonly DirectoryInfo directory = Directory.CreateTempSubdirectory("railbus-issuer-");
    private readonly List<ServiceBusClient> clients = [];
    private OwnBroker? broker;

    public Provider Provider { get; } = new();

    /// <summary>The key that is in the file at first.</summary>
    public SigningKey First { get; } = SigningKey.Rsa("in-the-file");

    public OwnBroker Broker => broker ?? throw new InvalidOperationException("the broker did not start");

    public static async Task<TrustingBroker> Start()
    {
        var world = new TrustingBroker();
        world.WriteKeys(world.First);
        var template = await File.ReadAllTextAsync(Path.Combine(AppContext.BaseDirectory, "issuers.toml"));
        var settings = template.Replace("ISSUER", world.Provider.Issuer).Replace("KEYS_FILE", world.KeysFile);
        var authority = Environment.GetEnvironmentVariable("OWN_BROKER_TLS")
            ?? throw new InvalidOperationException("OWN_BROKER_TLS names no folder");
        world.broker = await OwnBroker.WithSettings(settings, "--tls-dir", authority);
        var administration = world.Administration(world.Operator);
        await administration.CreateQueueAsync(Orders);
        await administration.CreateQueueAsync(Target);
        return world;
    }

    private string KeysFile => Path.Combine(directory.FullName, "keys.json");

    /// <summary>Replaces the file as a whole, so that it is never read half written.</summary>
    public void WriteKeys(params SigningKey[] keys)
    {
        var written = KeysFile + ".new";
        File.WriteAllText(written, SigningKey.Set(keys));
        File.Move(written, KeysFile, overwrite: true);
    }

    /// <summary>Of somebody who may do everything.</summary>
    public TokenCredential Operator =>
        Provider.Credential(new() { ["groups"] = new[] { "everyone", "operators" } });

    /// <summary>A client that is closed with the broker.</summary>
    public ServiceBusClient Client(TokenCredential credential,
        ServiceBusTransportType transport = ServiceBusTransportType.AmqpTcp)
    {
        clients.Add(Broker.NewClient(credential, transport));
        return clients[^1];
    }

    public ServiceBusAdministrationClient Administration(TokenCredential credential) =>
        Broker.NewAdministration(credential);

    public async ValueTask DisposeAsync()
    {
        foreach (var client in clients)
        {
            await client.DisposeAsync();
        }
        await Broker.DisposeAsync();
        await Provider.DisposeAsync();
        directory.Delete(recursive: true);
    }
}
