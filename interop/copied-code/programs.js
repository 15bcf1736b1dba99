// Programs in C#, Java and Go that are made of copied code, compiled with the SDK of its language and run once.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { dirname, join } = require("node:path");

const INTEROP = join(__dirname, "..");

/** Writes files into a new folder, runs a program there or in `cwd`, and removes the folder. */
function run(files, command, cwd) {
  const folder = mkdtempSync(join(tmpdir(), "railbus-copied-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const [program, ...options] = command(folder);
    const ran = spawnSync(program, options, { cwd: cwd ?? folder, encoding: "utf8", timeout: 300_000 });
    assert.equal(ran.status, 0, `${ran.error ?? ""}${ran.stdout}\n${ran.stderr}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A function for each text, which has names of its own, and a call for each. */
function functions(codes, define, call) {
  return [codes.map((code, at) => define(`send${at}`, code)), codes.map((_, at) => call(`send${at}`))].map((lines) => lines.join("\n"));
}

function csharp(codes, connection) {
  const define = (name, code) => `static async Task ${name}(ServiceBusClient client)\n{\n${code}\n}`;
  const [all, calls] = functions(codes, define, (name) => `await ${name}(client);`);
  const [, version] = /"Azure.Messaging.ServiceBus" Version="([^"]+)"/.exec(readFileSync(join(INTEROP, "dotnet/Railbus.Interop.csproj"), "utf8"));
  const project = `<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <InvariantGlobalization>true</InvariantGlobalization>
    <NoWarn>$(NoWarn);NU1603;NETSDK1188</NoWarn>
    <RestorePackagesPath>${process.env.RAILBUS_DOTNET_PACKAGES}</RestorePackagesPath>
  </PropertyGroup>
  <ItemGroup>
    <PackageReference Include="Azure.Messaging.ServiceBus" Version="${version}" />
  </ItemGroup>
</Project>`;
  const program = `using Azure.Messaging.ServiceBus;
await using var client = new ServiceBusClient(${JSON.stringify(connection)});
${calls}
${all}`;
  const feed = process.env.RAILBUS_DOTNET_FEED;
  const sources = feed ? [`-p:RestoreSources=${feed}`] : [];
  run({ "copied.csproj": project, "Program.cs": program }, () => ["dotnet", "run", ...sources]);
}

function java(codes, connection) {
  const define = (name, code) => `private static void ${name}(ServiceBusClientBuilder builder) {\n${code}\n}`;
  const call = (name) => `${name}(new ServiceBusClientBuilder().connectionString(${JSON.stringify(connection)}));`;
  const [all, calls] = functions(codes, define, call);
  const test = `import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import org.junit.jupiter.api.Test;

class CopiedTest {
    @Test
    void itSends() {
${calls}
    }

${all}
}`;
  const files = { "pom.xml": readFileSync(join(INTEROP, "java/pom.xml"), "utf8"), "src/test/java/CopiedTest.java": test };
  run(files, () => ["mvn", "--batch-mode", "--no-transfer-progress", "--offline", "-Dstyle.color=never", "test"]);
}

function go(codes, connection) {
  const define = (name, code) => `func ${name}(ctx context.Context, client *azservicebus.Client) error {\n${code}\nreturn err\n}`;
  const [all, calls] = functions(codes, define, (name) => `check(${name}(ctx, client))`);
  // What no text needs must not count as unused.
  const program = `package main

import (
	"context"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var _ = []any{math.Pi, time.Second, to.Ptr(1), amqp.Symbol("")}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	client, err := azservicebus.NewClientFromConnectionString(${JSON.stringify(connection)}, nil)
	check(err)
	${calls}
	check(client.Close(ctx))
}

${all}
`;
  // The versions are those of the suite's module.
  run({ "main.go": program }, (folder) => ["go", "run", join(folder, "main.go")], join(INTEROP, "go"));
}

module.exports = { "C#": csharp, Java: java, Go: go };
