using System.Buffers.Text;
using System.Net;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Azure.Core;

namespace Railbus.Interop;

/// <summary>What a token says; what is more than the issuer, the audience and the end.</summary>
internal sealed class Claims : Dictionary<string, object>
{
    /// <summary>These claims, with others in their place or beside them.</summary>
    public Claims And(Claims more)
    {
        var all = new Claims();
        foreach (var (name, value) in this.Concat(more))
        {
            all[name] = value;
        }
        return all;
    }
}

/// <summary>A pair of keys; its public half goes into a JWK set.</summary>
internal sealed record SigningKey(string Name, string Algorithm, Func<byte[], byte[]> Sign, Claims Public)
{
    public static SigningKey Rsa(string name)
    {
        var key = RSA.Create(2048);
        var numbers = key.ExportParameters(includePrivateParameters: false);
        return new(name, "RS256", text => key.SignData(text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1), new()
        {
            ["kty"] = "RSA", ["kid"] = name, ["use"] = "sig", ["alg"] = "RS256",
            ["n"] = Base64Url.EncodeToString(numbers.Modulus), ["e"] = Base64Url.EncodeToString(numbers.Exponent),
        });
    }

    public static SigningKey Elliptic(string name)
    {
        var key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        var point = key.ExportParameters(includePrivateParameters: false).Q;
        return new(name, "ES256", text => key.SignData(text, HashAlgorithmName.SHA256), new()
        {
            ["kty"] = "EC", ["kid"] = name, ["use"] = "sig", ["alg"] = "ES256", ["crv"] = "P-256",
            ["x"] = Base64Url.EncodeToString(point.X), ["y"] = Base64Url.EncodeToString(point.Y),
        });
    }

    public string Token(Claims claims)
    {
        var text = Head(new() { ["alg"] = Algorithm, ["kid"] = Name }, claims);
        return $"{text}.{Base64Url.EncodeToString(Sign(Encoding.ASCII.GetBytes(text)))}";
    }

    /// <summary>A token that says of itself that it needs no signature.</summary>
    public static string Unsigned(Claims claims) => Head(new() { ["alg"] = "none" }, claims) + ".";

    private static string Head(Claims head, Claims claims) => $"{Encode(head)}.{Encode(claims)}";

    private static string Encode(Claims value) => Base64Url.EncodeToString(JsonSerializer.SerializeToUtf8Bytes(value));

    public static string Set(params SigningKey[] keys) =>
        JsonSerializer.Serialize(new { keys = keys.Select(key => key.Public) });
}

/// <summary>What the SDK asks for tokens: each is made anew, from the claims of a user or a program.</summary>
internal sealed class ClaimsCredential(Func<Claims, string> token, string issuer, Claims claims) : TokenCredential
{
    public const string Audience = "api://orders";

    private static readonly string[] Scopes =
        ["https://servicebus.azure.net/.default", "https://servicebus.azure.net//.default"];

    public override AccessToken GetToken(TokenRequestContext asked, CancellationToken cancel)
    {
        Assert.Contains(asked.Scopes[0], Scopes);
        var expires = DateTimeOffset.UtcNow.AddHours(1);
        var all = new Claims { ["iss"] = issuer, ["aud"] = Audience, ["exp"] = expires.ToUnixTimeSeconds() };
        return new(token(all.And(claims)), expires);
    }

    public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext asked, CancellationToken cancel) =>
        new(GetToken(asked, cancel));
}

/// <summary>
/// A provider of OpenID Connect, written for these tests: it serves a discovery document and a JWK set on loopback, and
/// signs with an RSA and an elliptic key.
/// </summary>
internal sealed class Provider : IAsyncDisposable
{
    private readonly TcpListener listener = new(IPAddress.Loopback, 0);
    private readonly CancellationTokenSource end = new();
    private readonly Dictionary<string, string> documents;
    private readonly Task serving;

    public Provider()
    {
        listener.Start();
        Issuer = $"http://{listener.LocalEndpoint}/tenant";
        documents = new()
        {
            ["/tenant/.well-known/openid-configuration"] =
                JsonSerializer.Serialize(new { issuer = Issuer, jwks_uri = $"{Issuer}/keys" }),
            ["/tenant/keys"] = SigningKey.Set([.. Keys.Values]),
        };
        serving = Serve();
    }

    public string Issuer { get; }

    public Dictionary<string, SigningKey> Keys { get; } =
        new() { ["RS256"] = SigningKey.Rsa("first"), ["ES256"] = SigningKey.Elliptic("second") };

    /// <summary>Of a program or a user with these claims.</summary>
    public ClaimsCredential Credential(Claims claims, string algorithm = "RS256") =>
        new(Keys[algorithm].Token, Issuer, claims);

    private async Task Serve()
    {
        while (!end.IsCancellationRequested)
        {
            using var peer = await listener.AcceptTcpClientAsync(end.Token);
            var stream = peer.GetStream();
            using var request = new StreamReader(stream);
            var path = (await request.ReadLineAsync(end.Token))?.Split(' ').ElementAtOrDefault(1) ?? "";
            while (!string.IsNullOrEmpty(await request.ReadLineAsync(end.Token)))
            {
            }
            var found = documents.TryGetValue(path, out var document);
            var head = $"HTTP/1.1 {(found ? "200 OK" : "404 Not Found")}\r\ncontent-type: application/json\r\n"
                + $"content-length: {document?.Length ?? 0}\r\nconnection: close\r\n\r\n";
            await stream.WriteAsync(Encoding.ASCII.GetBytes(head + document), end.Token);
        }
    }

    public async ValueTask DisposeAsync()
    {
        await end.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => serving);
        listener.Dispose();
        end.Dispose();
    }
}
