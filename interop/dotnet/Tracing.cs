using System.Diagnostics;
using OpenTelemetry;
using OpenTelemetry.Trace;

namespace Railbus.Interop;

/// <summary>Runs alone: while a listener is in the process, the SDK writes a context into every message.</summary>
[CollectionDefinition(nameof(Tracing), DisableParallelization = true)]
public class Alone;

/// <summary>Tracing: the context that the SDK writes into a message goes with it wherever the broker takes it.</summary>
[Collection(nameof(Tracing))]
public class Tracing
{
    private static readonly ActivitySource Source = new("Railbus.Interop");

    [Fact]
    public async Task AMessageCarriesTheTraceThatItWasSentIn()
    {
        using var tracing = NewTracing([]);
        await using var queue = await Queue.Create();
        var trace = await SendTraced(queue.Sender, new("traced"));
        var received = await queue.Receiver.Take();
        AssertCarries(trace, received);
    }

    [Fact]
    public async Task AHandlerContinuesTheTraceOfItsMessage()
    {
        List<Activity> activities = [];
        using var tracing = NewTracing(activities);
        await using var queue = await Queue.Create();
        var handled = new TaskCompletionSource<ActivityTraceId?>();
        await using var processor = queue.Client.CreateProcessor(queue.Name);
        processor.ProcessMessageAsync += _ =>
        {
            handled.TrySetResult(Activity.Current?.TraceId);
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        var trace = await SendTraced(queue.Sender, new("traced"));
        Assert.Equal(trace, await handled.Task.WaitAsync(TimeSpan.FromSeconds(60)));
        await processor.StopProcessingAsync();
        // Other tests of the process have activities too, which no longer come then.
        tracing.Shutdown();
        Assert.Contains(activities, activity =>
            activity.OperationName == "ServiceBusProcessor.ProcessMessage" && activity.TraceId == trace);
    }

    [Fact]
    public async Task ACopyOfATopicAndADeadLetterKeepTheTrace()
    {
        using var tracing = NewTracing([]);
        await using var topic = await Topic.Create();
        var subscription = await topic.Subscribe("all");
        var trace = await SendTraced(topic.Sender, new("traced"));
        var copy = await subscription.ReceiveOne();
        AssertCarries(trace, copy);
        await subscription.DeadLetterMessageAsync(copy);
        AssertCarries(trace, await topic.DeadLetters("all").ReceiveOne());
    }

    private static TracerProvider NewTracing(ICollection<Activity> activities) =>
        Sdk.CreateTracerProviderBuilder()
            .AddSource(Source.Name, "Azure.*")
            .AddInMemoryExporter(activities)
            .Build();

    /// <summary>Sends a message within an activity of its own, whose trace it returns.</summary>
    private static async Task<ActivityTraceId> SendTraced(ServiceBusSender sender, ServiceBusMessage message)
    {
        using var activity = Source.StartActivity("order");
        Assert.NotNull(activity);
        await sender.SendMessageAsync(message);
        return activity.TraceId;
    }

    private static void AssertCarries(ActivityTraceId trace, ServiceBusReceivedMessage message)
    {
        Assert.Contains(trace.ToHexString(), Assert.IsType<string>(message.ApplicationProperties["Diagnostic-Id"]));
        Assert.Contains(trace.ToHexString(), Assert.IsType<string>(message.ApplicationProperties["traceparent"]));
    }
}
