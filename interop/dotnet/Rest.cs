using System.Globalization;
using System.Net;
using System.Text.Json.Nodes;
using Azure.Messaging.ServiceBus.Administration;

namespace Railbus.Interop;

/// <summary>Messages by plain HTTP requests beside those of the SDK, and keys of a queue that are replaced.</summary>
public class Rest
{
    // This SDK takes nothing but 32 bytes in base64.
    private const string FirstKey = "5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0=";
    private const string SecondKey = "rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY=";
    private const string ThirdKey = "r80btrTYGvcf1qpfhHTL+5AXFRvS5UxVaIHUhSyJwCA=";

    private static readonly Broker Broker = Broker.OfTheRun;

    private static Task<HttpResponseMessage> Ask(HttpMethod method, string path, string rule = "", string key = "") =>
        Send(new HttpRequestMessage(method, $"http://{Broker.Authority}/{path}"), rule, key);

    private static async Task<HttpResponseMessage> Send(HttpRequestMessage request, string rule = "", string key = "")
    {
        var path = request.RequestUri!.AbsolutePath.TrimStart('/').Split("/messages")[0];
        request.Headers.Authorization = Broker.Signature(path, rule == "" ? null : (rule, key));
        using var http = new HttpClient();
        return await http.SendAsync(request);
    }

    private static async Task<HttpStatusCode> SendByHttp(string queue, string rule, string key)
    {
        var request = new HttpRequestMessage(HttpMethod.Post, $"http://{Broker.Authority}/{queue}/messages")
        {
            Content = new StringContent("body"),
        };
        using var answer = await Send(request, rule, key);
        return answer.StatusCode;
    }

    private static async Task SendByAmqp(string queue, string rule, string key)
    {
        var text = $"Endpoint=sb://{Broker.Authority};SharedAccessKeyName={rule};SharedAccessKey={key};"
            + "UseDevelopmentEmulator=true;";
        await using var client = new Broker(text).NewClient();
        await client.CreateSender(queue).SendMessageAsync(new("body"));
    }

    [Fact]
    public async Task TheSdkReceivesWhatWasSentByHttp()
    {
        await using var queue = await Queue.Create();
        var request = new HttpRequestMessage(HttpMethod.Post, $"http://{Broker.Authority}/{queue.Name}/messages")
        {
            Content = new StringContent("by http", null, "text/plain"),
            Headers =
            {
                { "BrokerProperties", """{"MessageId": "id", "Label": "subject", "CorrelationId": "correlation"}""" },
                { "priority", "\"high\"" },
                { "amount", "17" },
            },
        };
        using var answer = await Send(request);
        Assert.Equal(HttpStatusCode.Created, answer.StatusCode);
        var received = await queue.Receiver.Take();
        Assert.Equal(("by http", "id", "subject", "correlation"),
            (received.Body.ToString(), received.MessageId, received.Subject, received.CorrelationId));
        Assert.StartsWith("text/plain", received.ContentType);
        Assert.Equal("high", received.ApplicationProperties["priority"]);
        Assert.Equal(17, Convert.ToInt32(received.ApplicationProperties["amount"], CultureInfo.InvariantCulture));
    }

    [Fact]
    public async Task WhatTheSdkSendsIsReceivedByHttp()
    {
        await using var queue = await Queue.Create();
        await queue.Send(new ServiceBusMessage("by amqp")
        {
            Subject = "subject", ApplicationProperties = { ["color"] = "blue" },
        });
        using var first = await Ask(HttpMethod.Post, $"{queue.Name}/messages/head?timeout=20");
        Assert.Equal((HttpStatusCode.Created, "by amqp"),
            (first.StatusCode, await first.Content.ReadAsStringAsync()));
        Assert.Equal(["\"blue\""], first.Headers.GetValues("color"));
        Assert.Equal("subject", (string?)Properties(first)["Label"]);
        // Renewed, and then unlocked.
        Assert.Equal(HttpStatusCode.OK, (await At(first, HttpMethod.Post)).StatusCode);
        Assert.Equal(HttpStatusCode.OK, (await At(first, HttpMethod.Put)).StatusCode);
        using var second = await Ask(HttpMethod.Post, $"{queue.Name}/messages/head?timeout=20");
        Assert.Equal(2, (int?)Properties(second)["DeliveryCount"]);
        Assert.Equal(HttpStatusCode.OK, (await At(second, HttpMethod.Delete)).StatusCode);
        Assert.Equal(HttpStatusCode.NotFound, (await At(second, HttpMethod.Delete)).StatusCode);
        using var none = await Ask(HttpMethod.Delete, $"{queue.Name}/messages/head?timeout=0");
        Assert.Equal(HttpStatusCode.NoContent, none.StatusCode);
        Assert.Empty(await queue.Bodies());
    }

    private static JsonNode Properties(HttpResponseMessage answer) =>
        JsonNode.Parse(answer.Headers.GetValues("BrokerProperties").Single())!;

    private static Task<HttpResponseMessage> At(HttpResponseMessage received, HttpMethod method) =>
        Send(new HttpRequestMessage(method, received.Headers.Location));

    private static async Task GiveKeys(Queue queue, AccessRights right, string primary, string secondary)
    {
        QueueProperties properties = await Broker.Administration.GetQueueAsync(queue.Name);
        properties.AuthorizationRules.Clear();
        properties.AuthorizationRules.Add(
            new SharedAccessAuthorizationRule("app", primary, secondary, [right]));
        await Broker.Administration.UpdateQueueAsync(properties);
    }

    [Fact]
    public async Task KeysOfAQueueLetInUntilTheyAreReplaced()
    {
        await using var queue = await Queue.Create();
        await GiveKeys(queue, AccessRights.Send, FirstKey, SecondKey);
        foreach (var key in new[] { FirstKey, SecondKey })
        {
            await SendByAmqp(queue.Name, "app", key);
            Assert.Equal(HttpStatusCode.Created, await SendByHttp(queue.Name, "app", key));
        }
        await GiveKeys(queue, AccessRights.Send, SecondKey, ThirdKey);
        await SendByAmqp(queue.Name, "app", SecondKey);
        await SendByAmqp(queue.Name, "app", ThirdKey);
        await Assert.ThrowsAsync<UnauthorizedAccessException>(() => SendByAmqp(queue.Name, "app", FirstKey));
        Assert.Equal(HttpStatusCode.Unauthorized, await SendByHttp(queue.Name, "app", FirstKey));
        Assert.Equal(6, (await queue.Bodies()).Length);
    }

    [Fact]
    public async Task AnUnknownNameThatBeginsWithADollarIsMissingToWhoeverMayManage()
    {
        const string Unknown = "$nservicebus-verification-queue";
        await using var queue = await Queue.Create();
        await GiveKeys(queue, AccessRights.Listen, FirstKey, SecondKey);
        using var answer = await Ask(HttpMethod.Get, Unknown);
        Assert.Equal(HttpStatusCode.OK, answer.StatusCode);
        Assert.Contains("Publicly Listed Services", await answer.Content.ReadAsStringAsync());
        using var ofListener = await Ask(HttpMethod.Get, Unknown, "app", FirstKey);
        Assert.Equal(HttpStatusCode.Unauthorized, ofListener.StatusCode);
        using var ofStranger = await Ask(HttpMethod.Get, Unknown, "RootManageSharedAccessKey", "WRONG_KEY_VALUE");
        Assert.Equal(HttpStatusCode.Unauthorized, ofStranger.StatusCode);
    }

    [Fact]
    public async Task AKeyThatMaySendMayNotReceive()
    {
        await using var queue = await Queue.Create();
        await using var other = await Queue.Create();
        await GiveKeys(queue, AccessRights.Send, FirstKey, SecondKey);
        await SendByAmqp(queue.Name, "app", FirstKey);
        using var answer = await Ask(HttpMethod.Post, $"{queue.Name}/messages/head?timeout=0", "app", FirstKey);
        Assert.Equal(HttpStatusCode.Unauthorized, answer.StatusCode);
        Assert.Equal(HttpStatusCode.Unauthorized, await SendByHttp(other.Name, "app", FirstKey));
        Assert.Equal(["body"], await queue.Bodies());
        Assert.Empty(await other.Bodies());
    }
}
