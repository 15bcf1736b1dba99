using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>A topic that one test has for itself, with a client of its own; disposing of it deletes both.</summary>
internal sealed class Topic : IAsyncDisposable
{
    private readonly Broker broker;

    private Topic(Broker broker, string name)
    {
        this.broker = broker;
        Name = name;
        Client = broker.NewClient();
        Sender = Client.CreateSender(name);
    }

    public string Name { get; }

    public ServiceBusClient Client { get; }

    public ServiceBusSender Sender { get; }

    /// <summary>Makes a topic at the broker of the run, or at another.</summary>
    public static async Task<Topic> Create(Action<CreateTopicOptions>? configure = null, Broker? broker = null)
    {
        broker ??= Broker.OfTheRun;
        var options = new CreateTopicOptions(Queue.NewName());
        configure?.Invoke(options);
        await broker.Administration.CreateTopicAsync(options);
        return new(broker, options.Name);
    }

    /// <summary>Makes a subscription to all messages, or those of a filter, and returns its receiver.</summary>
    public async Task<ServiceBusReceiver> Subscribe(string name, RuleFilter? filter = null, RuleAction? action = null,
        Action<CreateSubscriptionOptions>? configure = null)
    {
        var options = new CreateSubscriptionOptions(Name, name);
        configure?.Invoke(options);
        var rule = new CreateRuleOptions("rule", filter ?? new TrueRuleFilter()) { Action = action };
        await broker.Administration.CreateSubscriptionAsync(options, rule);
        return Client.CreateReceiver(Name, name);
    }

    public ServiceBusReceiver DeadLetters(string subscription) =>
        Client.CreateReceiver(Name, subscription, new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });

    public Task Send(params ServiceBusMessage[] messages) => Sender.SendMessagesAsync(messages);

    public async ValueTask DisposeAsync()
    {
        await Client.DisposeAsync();
        await broker.Administration.DeleteTopicAsync(Name);
    }
}
