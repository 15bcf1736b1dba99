using System.Net.Security;
using System.Security.Authentication;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>
/// TLS, with AMQP or WebSocket inside. .NET trusts the broker's certificate authority by <c>SSL_CERT_FILE</c>, which
/// <c>run</c> sets. Without <c>UseDevelopmentEmulator=true</c> this SDK speaks TLS, and takes the port from the
/// connection string only for administration: that of AMQP is said by <c>CustomEndpointAddress</c>.
/// </summary>
public class Tls
{
    private static readonly string Secured =
        Broker.OfTheRun.ConnectionString.Replace("UseDevelopmentEmulator=true", "");

    private static ServiceBusClient NewClient(Action<ServiceBusClientOptions> configure)
    {
        var endpoint = new Uri($"https://{Broker.OfTheRun.Authority}");
        var options = new ServiceBusClientOptions { CustomEndpointAddress = endpoint };
        configure(options);
        return new(Secured, options);
    }

    [Theory]
    [InlineData(ServiceBusTransportType.AmqpTcp, 10)]
    [InlineData(ServiceBusTransportType.AmqpTcp, 900 << 10)]
    [InlineData(ServiceBusTransportType.AmqpWebSockets, 10)]
    [InlineData(ServiceBusTransportType.AmqpWebSockets, 900 << 10)]
    public async Task AMessageGoesOver(ServiceBusTransportType transport, int size)
    {
        await using var queue = await Queue.Create();
        await using var client = NewClient(options => options.TransportType = transport);
        var body = new byte[size];
        new Random(7).NextBytes(body);
        await client.CreateSender(queue.Name).SendMessageAsync(new(body));
        var receiver = client.CreateReceiver(queue.Name);
        var received = await receiver.ReceiveOne();
        Assert.Equal(body, received.Body.ToArray());
        await receiver.RenewMessageLockAsync(received);
        await receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>The emulator's string, with a transport that needs no port but the one of the string.</summary>
    [Fact]
    public async Task AMessageGoesOverAWebSocketWithoutTls()
    {
        await using var queue = await Queue.Create(
            client: options => options.TransportType = ServiceBusTransportType.AmqpWebSockets);
        await queue.Send("body");
        var received = await queue.Receiver.ReceiveOne();
        await queue.Receiver.RenewMessageLockAsync(received);
        await queue.Receiver.CompleteMessageAsync(received);
        Assert.Empty(await queue.Bodies());
    }

    /// <summary>A broker of its own has an authority of its own, which nothing here trusts.</summary>
    [Theory]
    [InlineData(ServiceBusTransportType.AmqpTcp)]
    [InlineData(ServiceBusTransportType.AmqpWebSockets)]
    public async Task AClientThatDoesNotTrustTheAuthorityDoesNotConnect(ServiceBusTransportType transport)
    {
        await using var broker = await OwnBroker.WithSettings("");
        await using var queue = await Queue.Create(broker: broker);
        var options = new ServiceBusClientOptions
        {
            CustomEndpointAddress = new Uri($"https://{broker.Authority}"),
            TransportType = transport,
            RetryOptions = new() { MaxRetries = 0 },
        };
        var secured = broker.ConnectionString.Replace("UseDevelopmentEmulator=true", "");
        await using var client = new ServiceBusClient(secured, options);
        AssertIsUntrusted(await Assert.ThrowsAnyAsync<Exception>(
            () => client.CreateSender(queue.Name).SendMessageAsync(new("refused"))));
        var administration = new ServiceBusAdministrationClient(secured,
            new ServiceBusAdministrationClientOptions { Retry = { MaxRetries = 0 } });
        AssertIsUntrusted(await Assert.ThrowsAnyAsync<Exception>(() => administration.DeleteQueueAsync(queue.Name)));
        Assert.Empty(await queue.Bodies());
    }

    private static void AssertIsUntrusted(Exception failure)
    {
        for (var cause = failure; cause != null; cause = cause.InnerException)
        {
            if (cause is AuthenticationException)
            {
                return;
            }
        }
        Assert.Fail(failure.ToString());
    }

    [Fact]
    public async Task TheCertificateIsOneThatTheAuthorityGaveForThisHost()
    {
        await using var queue = await Queue.Create();
        var found = new List<SslPolicyErrors>();
        await using var client = NewClient(options => options.CertificateValidationCallback = (_, _, _, errors) =>
        {
            found.Add(errors);
            return errors == SslPolicyErrors.None;
        });
        await client.CreateSender(queue.Name).SendMessageAsync(new("body"));
        Assert.Equal([SslPolicyErrors.None], found);
    }

    [Fact]
    public async Task QueuesAreAdministeredWithinTls()
    {
        var administration = new ServiceBusAdministrationClient(Secured);
        var name = Queue.NewName();
        await administration.CreateQueueAsync(name);
        Assert.True(await Broker.OfTheRun.Administration.QueueExistsAsync(name));
        await administration.DeleteQueueAsync(name);
    }
}
