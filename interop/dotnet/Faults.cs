using System.Net;
using System.Runtime.CompilerServices;

namespace Railbus.Interop;

/// <summary>
/// Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says. Each effect happens once,
/// and to two operations in a row where the second one waits for the first: then it is the second that counts. With
/// <c>RAILBUS_UPDATE_FAULTS</c> the table is written anew.
/// </summary>
public class Faults
{
    private const string Title = "### .NET: Azure.Messaging.ServiceBus 7.21.0";
    private static readonly string[] Head =
    [
        "| Effect | `send` | tries | messages | `complete` | tries | messages |",
        "|---|---|---|---|---|---|---|",
    ];

    public static TheoryData<string> Effects() =>
    [
        """{"refuse": "server-busy"}""", """{"refuse": "timeout"}""", """{"refuse": "quota-exceeded"}""", """{"refuse": "entity-disabled"}""",
        """{"refuse": "not-found"}""", """{"refuse": "unauthorized"}""", """{"refuse": "internal-error"}""",
        """{"detach": "detach-forced"}""", """{"end": "internal-error"}""", """{"close": "connection-forced"}""",
        "\"expire-token\"", """{"disconnect": "before"}""", """{"disconnect": "after"}""", """{"delay-ms": 50}""",
        Throttle, Withhold, LoseLock, DeliverAgain,
    ];

    private const string Throttle = """{"throttle-per-second": 20}""";
    private const string Withhold = """{"withhold-credit-ms": 50}""";
    private const string LoseLock = "\"lose-lock\"";
    private const string DeliverAgain = "\"deliver-again\"";

    [Theory]
    [MemberData(nameof(Effects))]
    public async Task AnEffectIsShownAsTheDocumentSays(string effect)
    {
        // After server-busy this SDK waits ten seconds, whatever its options say, so neither waits for the other.
        var ofSend = effect is LoseLock or DeliverAgain ? NotShown() : OfSend(effect);
        var ofComplete = effect is Withhold ? NotShown() : OfComplete(effect);
        var shown = effect.Replace("\"", "").Trim('{', '}');
        var found = $"| `{shown}` {await ofSend}{await ofComplete}|";
        if (Environment.GetEnvironmentVariable("RAILBUS_UPDATE_FAULTS") != null)
        {
            Write(found);
        }
        Assert.Contains(found, Rows());
    }

    [Fact]
    public void TheTableHasNoOtherEffect() => Assert.Equal(Effects().Count, Rows().Length);

    [Fact]
    public async Task ARuleThatIsWrongIsRefusedAndChangesNothing()
    {
        const string Rules = "/namespaces/default/faults";
        const string Other = """{"name": "other", "effect": "lose-lock"}""";
        await using var broker = await Start();
        await broker.Inject("complete", DeliverAgain);
        var (_, before) = await broker.Ask(HttpMethod.Get, Rules);
        foreach (var (method, body) in new[]
        {
            (HttpMethod.Post, """{"name": "other", "effect": "explode"}"""),
            (HttpMethod.Post, """{"name": "other", "effect": "lose-lock", "match": {"operations": ["fly"]}}"""),
            (HttpMethod.Post, """{"name": "other", "effect": "lose-lock", "match": {"operations": ["send"]}}"""),
            (HttpMethod.Post, """{"name": "other", "effect": "lose-lock", "match": {"probability": 2}}"""),
            (HttpMethod.Post, """{"name": "once", "effect": "lose-lock"}"""),
            (HttpMethod.Put, $$"""{"faults": [{{Other}}, {{Other}}]}"""),
            (HttpMethod.Put, "{}"),
        })
        {
            var (status, answer) = await broker.Ask(method, Rules, body);
            Assert.Equal((HttpStatusCode.BadRequest, body), (status, body));
            Assert.NotEmpty((string?)answer["error"] ?? "");
        }
        var (_, after) = await broker.Ask(HttpMethod.Get, Rules);
        Assert.Equal(before.ToJsonString(), after.ToJsonString());
    }

    private static Task<string> NotShown() => Task.FromResult("|  |  |  ");

    private static int CountOf(string effect) => effect is Throttle or Withhold ? 2 : 1;

    private static Task<OwnBroker> Start() => OwnBroker.WithSettings("""
        [[queues]]
        name = "orders"
        lock-duration = "PT5M"
        """);

    /// <summary>Its retries are the SDK's own, with less time between them.</summary>
    private static ServiceBusClient NewClient(Broker broker) => broker.NewClient(options => options.RetryOptions = new()
    {
        Delay = TimeSpan.FromMilliseconds(50),
        TryTimeout = TimeSpan.FromSeconds(5),
    });

    private static async Task<string> OfSend(string effect)
    {
        await using var broker = await Start();
        await using var client = NewClient(broker);
        var sender = client.CreateSender("orders");
        var others = CountOf(effect) - 1;
        await broker.Inject("send", effect, others + 1);
        for (var other = 0; other < others; other++)
        {
            await sender.SendMessageAsync(new("other"));
        }
        return await Result(broker, others, () => sender.SendMessageAsync(new("body")), others);
    }

    private static async Task<string> OfComplete(string effect)
    {
        await using var broker = await Start();
        await using var client = NewClient(broker);
        var sender = client.CreateSender("orders");
        var count = CountOf(effect);
        await sender.SendMessagesAsync(Enumerable.Range(0, count).Select(_ => new ServiceBusMessage("body")));
        var receiver = client.CreateReceiver("orders");
        var received = await receiver.ReceiveMany(count);
        await broker.Inject("complete", effect, count);
        foreach (var other in received[..^1])
        {
            await receiver.CompleteMessageAsync(other);
        }
        return await Result(broker, count - 1, () => receiver.CompleteMessageAsync(received[^1]), 0);
    }

    /// <summary>What is shown, how often the broker has seen it, and how many messages are left but others.</summary>
    private static async Task<string> Result(Broker broker, int before, Func<Task> operation, int others)
    {
        var shown = await Outcome(operation);
        var (_, rules) = await broker.Ask(HttpMethod.Get, "/namespaces/default/faults");
        var tries = (int)rules["faults"]![0]!["matched"]! - before;
        await using var client = broker.NewClient();
        var left = await client.CreateReceiver("orders").PeekMessagesAsync(100);
        return $"| {shown} | {tries} | {left.Count - others} ";
    }

    private static async Task<string> Outcome(Func<Task> operation)
    {
        try
        {
            await operation();
        }
        catch (ServiceBusException failure)
        {
            return $"`ServiceBusException` `{failure.Reason}`";
        }
        catch (Exception failure)
        {
            return $"`{failure.GetType().Name}`";
        }
        return "nothing";
    }

    private static string Document([CallerFilePath] string here = "") =>
        Path.Combine(Path.GetDirectoryName(here)!, "..", "..", "docs", "faults.md");

    /// <summary>The lines of the table below its head.</summary>
    private static string[] Rows()
    {
        var lines = File.ReadAllLines(Document());
        var at = Array.IndexOf(lines, Title) + 2;
        Assert.Equal(Head, lines[at..(at + Head.Length)]);
        return [.. lines[(at + Head.Length)..].TakeWhile(line => line.StartsWith('|'))];
    }

    /// <summary>Puts a row in the place of the one for the same effect, or at the end.</summary>
    private static void Write(string found)
    {
        var rows = Rows();
        var effect = found.Split(" | ")[0];
        var place = Array.FindIndex(rows, row => row.Split(" | ")[0] == effect);
        List<string> lines = [.. File.ReadAllLines(Document())];
        var top = lines.IndexOf(Title) + 2 + Head.Length;
        if (place < 0)
        {
            lines.Insert(top + rows.Length, found);
        }
        else
        {
            lines[top + place] = found;
        }
        File.WriteAllLines(Document(), lines);
    }
}
