using Azure.Messaging.ServiceBus.Administration;
using Microsoft.Extensions.Azure;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace Railbus.Interop;

/// <summary>A worker service whose clients Microsoft.Extensions.Azure makes from its configuration.</summary>
public class Hosting
{
    [Fact]
    public async Task AHostedServiceHandlesWhatAnotherServiceSends()
    {
        await using var queue = await Queue.Create();
        using var host = NewHost(queue.Name);
        await host.StartAsync();
        await host.Services.GetRequiredService<ServiceBusSender>().SendMessageAsync(new("order"));
        Assert.Equal("order", await host.Services.GetRequiredService<Inbox>().Next());
        await host.StopAsync();
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AHostedServiceThatStopsLeavesTheRestToTheNext()
    {
        await using var queue = await Queue.Create();
        foreach (var body in (string[])["first", "second"])
        {
            using var host = NewHost(queue.Name);
            await host.StartAsync();
            await host.Services.GetRequiredService<ServiceBusSender>().SendMessageAsync(new(body));
            Assert.Equal(body, await host.Services.GetRequiredService<Inbox>().Next());
            await host.StopAsync();
        }
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AFailureOfAHostedServiceIsHandledAgain()
    {
        await using var queue = await Queue.Create();
        using var host = NewHost(queue.Name);
        host.Services.GetRequiredService<Inbox>().Failures = 1;
        await host.StartAsync();
        await host.Services.GetRequiredService<ServiceBusSender>().SendMessageAsync(new("again"));
        Assert.Equal("again", await host.Services.GetRequiredService<Inbox>().Next());
        Assert.Equal("again", await host.Services.GetRequiredService<Inbox>().Next());
        await host.StopAsync();
        Assert.Empty(await queue.Bodies());
    }

    [Fact]
    public async Task AnAdministrationClientIsInjected()
    {
        var builder = NewBuilder();
        builder.Services.AddAzureClients(clients =>
            clients.AddServiceBusAdministrationClient(Broker.OfTheRun.ConnectionString));
        using var host = builder.Build();
        var administration = host.Services.GetRequiredService<ServiceBusAdministrationClient>();
        await using var queue = await Queue.Create();
        Assert.Equal(queue.Name, (await administration.GetQueueAsync(queue.Name)).Value.Name);
    }

    private static IHost NewHost(string queue)
    {
        var builder = NewBuilder();
        builder.Configuration.AddInMemoryCollection(
            new Dictionary<string, string?> { ["ServiceBus:ConnectionString"] = Broker.OfTheRun.ConnectionString });
        builder.Services.AddSingleton<Inbox>();
        builder.Services.AddAzureClients(clients =>
        {
            clients.AddServiceBusClient(builder.Configuration["ServiceBus:ConnectionString"]);
            clients.AddClient<ServiceBusSender, ServiceBusClientOptions>((_, _, services) =>
                services.GetRequiredService<ServiceBusClient>().CreateSender(queue));
            clients.AddClient<ServiceBusProcessor, ServiceBusProcessorOptions>((options, _, services) =>
                services.GetRequiredService<ServiceBusClient>().CreateProcessor(queue, options));
        });
        builder.Services.AddHostedService<Worker>();
        return builder.Build();
    }

    private static HostApplicationBuilder NewBuilder()
    {
        var builder = Host.CreateApplicationBuilder();
        // The SDK tells every step.
        builder.Logging.ClearProviders();
        return builder;
    }

    /// <summary>What the worker was given, and how often it is to fail.</summary>
    private sealed class Inbox
    {
        private readonly System.Threading.Channels.Channel<string> bodies =
            System.Threading.Channels.Channel.CreateUnbounded<string>();

        public int Failures { get; set; }

        public async Task<string> Next() => await bodies.Reader.ReadAsync().AsTask().WaitAsync(TimeSpan.FromSeconds(60));

        public void Handle(string body)
        {
            bodies.Writer.TryWrite(body);
            if (Failures-- > 0)
            {
                throw new InvalidOperationException("not yet");
            }
        }
    }

    private sealed class Worker(ServiceBusProcessor processor, Inbox inbox) : IHostedService
    {
        public async Task StartAsync(CancellationToken cancellation)
        {
            processor.ProcessMessageAsync += message =>
            {
                inbox.Handle(message.Message.Body.ToString());
                return Task.CompletedTask;
            };
            processor.ProcessErrorAsync += _ => Task.CompletedTask;
            await processor.StartProcessingAsync(cancellation);
        }

        public Task StopAsync(CancellationToken cancellation) => processor.StopProcessingAsync(cancellation);
    }
}
