using System.Net;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using Azure.Core;
using Azure.Core.Pipeline;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>A broker, and clients for it.</summary>
internal class Broker(string connectionString)
{
    // There is none for a string without a key.
    private readonly Lazy<ServiceBusAdministrationClient> administration = new(() => new(connectionString));

    /// <summary>The broker of the run, which the tests share.</summary>
    public static Broker OfTheRun { get; } = new(Environment.GetEnvironmentVariable("RAILBUS_CONNECTION_STRING")
        ?? throw new InvalidOperationException("RAILBUS_CONNECTION_STRING names no broker"));

    public string ConnectionString { get; } = connectionString;

    /// <summary>Host and port.</summary>
    public string Authority { get; } = Regex.Match(connectionString, "sb://([^/;]+)").Groups[1].Value;

    public ServiceBusAdministrationClient Administration => administration.Value;

    /// <summary>A client that does not try again, so that a test sees the first answer.</summary>
    public ServiceBusClient NewClient(Action<ServiceBusClientOptions>? configure = null)
    {
        var options = new ServiceBusClientOptions
        {
            RetryOptions = new() { MaxRetries = 0, TryTimeout = TimeSpan.FromSeconds(30) },
        };
        configure?.Invoke(options);
        return new(ConnectionString, options);
    }

    /// <summary>A client for a program without a connection string, within TLS.</summary>
    public ServiceBusClient NewClient(TokenCredential credential,
        ServiceBusTransportType transport = ServiceBusTransportType.AmqpTcp) =>
        new(Authority.Split(':')[0], credential, new ServiceBusClientOptions
        {
            CustomEndpointAddress = new Uri($"https://{Authority}"),
            TransportType = transport,
            RetryOptions = new() { MaxRetries = 0, TryTimeout = TimeSpan.FromSeconds(30) },
        });

    /// <summary>The client takes no port beside a credential, so its connections are led to the broker's.</summary>
    public ServiceBusAdministrationClient NewAdministration(TokenCredential credential)
    {
        var address = Authority.Split(':');
        var handler = new SocketsHttpHandler
        {
            ConnectCallback = async (_, cancel) =>
            {
                var socket = new Socket(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
                await socket.ConnectAsync(address[0], int.Parse(address[1]), cancel);
                return new NetworkStream(socket, ownsSocket: true);
            },
        };
        var options = new ServiceBusAdministrationClientOptions { Transport = new HttpClientTransport(handler) };
        return new(address[0], credential, options);
    }

    /// <summary>
    /// A shared access signature for a path, as the documentation of Service Bus makes it, with the key of the
    /// connection string or another one.
    /// </summary>
    public AuthenticationHeaderValue Signature(string path = "", (string Name, string Key)? rule = null)
    {
        var own = ServiceBusConnectionStringProperties.Parse(ConnectionString);
        var (name, secret) = rule ?? (own.SharedAccessKeyName, own.SharedAccessKey);
        var resource = WebUtility.UrlEncode($"http://{Authority}/{path}");
        var expiry = DateTimeOffset.UtcNow.AddHours(1).ToUnixTimeSeconds();
        var signed = HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), Encoding.UTF8.GetBytes($"{resource}\n{expiry}"));
        var signature = WebUtility.UrlEncode(Convert.ToBase64String(signed));
        return new("SharedAccessSignature", $"sr={resource}&sig={signature}&se={expiry}&skn={name}");
    }

    /// <summary>Asks at the broker's own interface, below <c>/$railbus</c>.</summary>
    public async Task<(HttpStatusCode Status, JsonNode Body)> Ask(HttpMethod method, string path, string? body = null)
    {
        using var http = new HttpClient();
        using var request = new HttpRequestMessage(method, $"http://{Authority}/$railbus{path}");
        request.Content = body == null ? null : new StringContent(body, Encoding.UTF8, "application/json");
        using var answer = await http.SendAsync(request);
        var text = await answer.Content.ReadAsStringAsync();
        return (answer.StatusCode, JsonNode.Parse(text) ?? throw new InvalidOperationException("null is no answer"));
    }

    /// <summary>Replaces the fault rules: this many of the next operations of a kind fail.</summary>
    public async Task Inject(string operation, string effect, int times = 1)
    {
        var (status, body) = await Ask(HttpMethod.Put, "/namespaces/default/faults", $$"""
            {"faults": [{"name": "once", "match": {"operations": ["{{operation}}"], "times": {{times}}},
                "effect": {{effect}}}]}
            """);
        Assert.True(status == HttpStatusCode.OK, body.ToString());
    }
}
