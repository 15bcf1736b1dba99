using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>A queue that one test has for itself, with a client of its own; disposing of it deletes both.</summary>
internal sealed class Queue : IAsyncDisposable
{
    private readonly Broker broker;

    private Queue(Broker broker, string name, Action<ServiceBusClientOptions>? configure)
    {
        this.broker = broker;
        Name = name;
        Client = broker.NewClient(configure);
        Sender = Client.CreateSender(name);
        Receiver = Client.CreateReceiver(name);
        DeadLetters = Client.CreateReceiver(name, new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });
    }

    public string Name { get; }

    public ServiceBusClient Client { get; }

    public ServiceBusSender Sender { get; }

    /// <summary>A receiver in peek-lock without prefetch.</summary>
    public ServiceBusReceiver Receiver { get; }

    public ServiceBusReceiver DeadLetters { get; }

    /// <summary>A name that no other test or run has used.</summary>
    public static string NewName() => "dotnet-" + Guid.NewGuid().ToString("N");

    /// <summary>Makes a queue at the broker of the run, or at another.</summary>
    public static async Task<Queue> Create(Action<CreateQueueOptions>? configure = null, Broker? broker = null,
        Action<ServiceBusClientOptions>? client = null)
    {
        broker ??= Broker.OfTheRun;
        var options = new CreateQueueOptions(NewName());
        configure?.Invoke(options);
        await broker.Administration.CreateQueueAsync(options);
        return new(broker, options.Name, client);
    }

    public static Task<Queue> CreateWithSessions(Broker? broker = null) =>
        Create(options => options.RequiresSession = true, broker);

    /// <summary>A receiver that takes its messages at once.</summary>
    public ServiceBusReceiver ReceiveAndDelete()
    {
        var options = new ServiceBusReceiverOptions { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete };
        return Client.CreateReceiver(Name, options);
    }

    /// <summary>Accepts a session by its id.</summary>
    public Task<ServiceBusSessionReceiver> Accept(string session) => Client.AcceptSessionAsync(Name, session);

    public Task Send(string body) => Sender.SendMessageAsync(new(body));

    public Task Send(params ServiceBusMessage[] messages) => Sender.SendMessagesAsync(messages);

    /// <summary>Sends messages of one session.</summary>
    public Task SendInSession(string session, params string[] bodies) =>
        Send([.. bodies.Select(body => new ServiceBusMessage(body) { SessionId = session })]);

    /// <summary>Bodies of all messages, in their order, whatever their state.</summary>
    public async Task<string[]> Bodies() => (await Receiver.PeekMessagesAsync(250)).Bodies();

    public async ValueTask DisposeAsync()
    {
        await Client.DisposeAsync();
        await broker.Administration.DeleteQueueAsync(Name);
    }
}
