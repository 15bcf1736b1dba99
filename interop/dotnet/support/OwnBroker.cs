using System.Diagnostics;
using System.Net;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;

namespace Railbus.Interop;

/// <summary>
/// A broker that one test has for itself, from the program in <c>RAILBUS_BIN</c>: <c>railbus serve --ephemeral</c>.
/// What is here is all that a project needs to copy.
/// </summary>
internal sealed partial class OwnBroker : Broker, IAsyncDisposable
{
    private const int Terminate = 15;
    private static readonly HttpClient Http = new();

    private readonly Process process;
    private readonly string configuration;

    private OwnBroker(Process process, string configuration, string connectionString)
        : base(connectionString)
    {
        this.process = process;
        this.configuration = configuration;
    }

    /// <summary>
    /// Starts a broker whose clock stands still until it is advanced, with these lines as its <c>railbus.toml</c>.
    /// </summary>
    public static async Task<OwnBroker> WithVirtualClock(string settings = "")
    {
        var broker = await Start(settings, "--virtual-clock");
        await broker.SetClock("""{"freeze": true}""");
        return broker;
    }

    /// <summary>Starts a broker with these lines as its <c>railbus.toml</c>, and with more options.</summary>
    public static Task<OwnBroker> WithSettings(string settings, params string[] options) => Start(settings, options);

    private static async Task<OwnBroker> Start(string settings, params string[] options)
    {
        var configuration = Path.GetTempFileName();
        await File.WriteAllTextAsync(configuration, settings);
        options = ["--config", configuration, .. options];
        var program = Environment.GetEnvironmentVariable("RAILBUS_BIN")
            ?? throw new InvalidOperationException("RAILBUS_BIN names no program");
        var start = new ProcessStartInfo(program, ["serve", "--ephemeral", "--listen", "127.0.0.1:0", .. options])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        var process = Process.Start(start) ?? throw new InvalidOperationException($"{program} did not start");
        process.BeginErrorReadLine();
        var ready = ConnectionStringOfReadyLine().Match(await process.StandardOutput.ReadLineAsync() ?? "");
        if (!ready.Success)
        {
            process.Kill();
            throw new InvalidOperationException("the broker did not become ready");
        }
        return new(process, configuration, ready.Groups[1].Value);
    }

    [GeneratedRegex("^railbus ready .* connection-string=\"([^\"]+)\"")]
    private static partial Regex ConnectionStringOfReadyLine();

    /// <summary>Lets time pass, such as <c>PT5M</c>; returns when all that became due has happened.</summary>
    public Task Advance(string duration) => SetClock($$"""{"advance": "{{duration}}"}""");

    private async Task SetClock(string change)
    {
        var answer = await Http.PostAsync($"http://{Authority}/$railbus/clock", new StringContent(change));
        Assert.Equal((HttpStatusCode.OK, change), (answer.StatusCode, change));
    }

    public async ValueTask DisposeAsync()
    {
        Signal(process.Id, Terminate);
        await process.WaitForExitAsync();
        process.Dispose();
        File.Delete(configuration);
    }

    // Process.Kill would leave the broker no time to remove its folder.
    [DllImport("libc", EntryPoint = "kill")]
    private static extern int Signal(int process, int signal);
}
