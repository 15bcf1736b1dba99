using System.Text.RegularExpressions;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>A broker, and clients for it.</summary>
internal class Broker(string connectionString)
{
    /// <summary>The broker of the run, which the tests share.</summary>
    public static Broker OfTheRun { get; } = new(Environment.GetEnvironmentVariable("RAILBUS_CONNECTION_STRING")
        ?? throw new InvalidOperationException("RAILBUS_CONNECTION_STRING names no broker"));

    public string ConnectionString { get; } = connectionString;

    /// <summary>Host and port.</summary>
    public string Authority { get; } = Regex.Match(connectionString, "sb://([^/;]+)").Groups[1].Value;

    public ServiceBusAdministrationClient Administration { get; } = new(connectionString);

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
}
