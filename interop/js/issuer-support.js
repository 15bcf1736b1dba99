// A provider of OpenID Connect, written for these tests, and a broker that trusts it.
//
// The provider serves a discovery document and a JWK set on loopback, and signs tokens. The broker has it as a
// configured issuer, and a second one whose keys are in a file. Programs get their tokens by an ordinary credential.
"use strict";

const assert = require("node:assert/strict");
const { generateKeyPairSync, sign } = require("node:crypto");
const { once } = require("node:events");
const { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { createServer } = require("node:http");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const runner = require("node:test");
const { ServiceBusAdministrationClient, ServiceBusClient } = require("@azure/service-bus");
const { Broker } = require("./virtual-clock.js");

const SCOPES = ["https://servicebus.azure.net/.default", "https://servicebus.azure.net//.default"];
const AUDIENCE = "api://orders";
const FILE_ISSUER = "https://keys.example";
const HOUR = 3600;

const WRITER = { roles: ["Orders.Write"] };
const READER = { scp: "openid orders.read" };
const OPERATOR = { groups: ["everyone", "operators"] };

const configuration = (issuer, file) =>
  readFileSync(join(__dirname, "..", "issuers.toml"), "utf8").replaceAll("ISSUER", issuer).replaceAll("KEYS_FILE", file);

const seconds = () => Math.floor(Date.now() / 1000);
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A pair of keys; its public half goes into a JWK set. */
class Key {
  constructor(name, algorithm = "RS256") {
    const { publicKey, privateKey } =
      algorithm === "RS256"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.name = name;
    this.algorithm = algorithm;
    this.private = privateKey;
    this.public = { ...publicKey.export({ format: "jwk" }), kid: name, use: "sig", alg: algorithm };
  }

  sign(claims) {
    const head = { alg: this.algorithm, typ: "JWT", kid: this.name };
    const text = `${encoded(head)}.${encoded(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.private, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }
}

const keySet = (...keys) => JSON.stringify({ keys: keys.map((key) => key.public) });

/** What an SDK asks for tokens: each is made anew, from the claims of a user or a program. */
function credential(key, issuer, claims, makeToken = (all) => key.sign(all)) {
  return {
    async getToken(scopes) {
      const [scope] = [scopes].flat();
      assert.ok(SCOPES.includes(scope), scope);
      const expires = seconds() + HOUR;
      const token = makeToken({ iss: issuer, aud: AUDIENCE, exp: expires, ...claims });
      return { token, expiresOnTimestamp: expires * 1000 };
    },
  };
}

/** A token that says of itself that it needs no signature. */
const unsigned = (claims) => `${encoded({ alg: "none", typ: "JWT" })}.${encoded(claims)}.`;

/** Serves the public halves of an RSA and an elliptic key, and signs with them. */
class Provider {
  static async start() {
    const provider = new Provider();
    provider.keys = { RS256: new Key("first"), ES256: new Key("second", "ES256") };
    provider.server = createServer((request, response) => {
      const documents = {
        "/tenant/.well-known/openid-configuration": JSON.stringify({
          issuer: provider.issuer,
          jwks_uri: `${provider.issuer}/keys`,
        }),
        "/tenant/keys": keySet(...Object.values(provider.keys)),
      };
      const document = documents[request.url];
      response.writeHead(document ? 200 : 404, { "content-type": "application/json" });
      response.end(document);
    });
    provider.server.listen(0, "127.0.0.1");
    await once(provider.server, "listening");
    provider.issuer = `http://127.0.0.1:${provider.server.address().port}/tenant`;
    return provider;
  }

  /** Of a program or a user with these claims. */
  credential(claims, algorithm = "RS256") {
    return credential(this.keys[algorithm], this.issuer, claims);
  }

  async stop() {
    const closed = once(this.server, "close");
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }
}

/** A broker that trusts a provider, and keys in a file. Its authority is one that `run` has made. */
class TrustingBroker {
  static async start(provider, ...keys) {
    const trusting = new TrustingBroker();
    trusting.directory = mkdtempSync(join(tmpdir(), "railbus-issuer-"));
    trusting.clients = [];
    trusting.writeKeys(...keys);
    const settings = join(trusting.directory, "railbus.toml");
    writeFileSync(settings, configuration(provider.issuer, trusting.file));
    const options = ["--config", settings, "--tls-dir", process.env.OWN_BROKER_TLS];
    trusting.broker = await Broker.start("clock.json", options);
    trusting.namespace = `localhost:${trusting.broker.address.split(":").pop()}`;
    return trusting;
  }

  get file() {
    return join(this.directory, "keys.json");
  }

  /** Replaces the file as a whole, so that it is never read half written. */
  writeKeys(...keys) {
    const written = join(this.directory, "keys.new");
    writeFileSync(written, keySet(...keys));
    renameSync(written, this.file);
  }

  /** A client that does not retry. It is closed with the broker. */
  client(of, options = {}) {
    const client = new ServiceBusClient(this.namespace, of, { retryOptions: { maxRetries: 0 }, ...options });
    this.clients.push(client);
    return client;
  }

  administration(of) {
    return new ServiceBusAdministrationClient(this.namespace, of, { retryOptions: { maxRetries: 0 } });
  }

  async stop() {
    for (const client of this.clients) await client.close();
    await this.broker.stop();
    rmSync(this.directory, { recursive: true });
  }
}

/** A test with a provider, and with a broker that trusts it and `keys` in a file. */
function testWithProvider(name, body, keys = [new Key("in-the-file")]) {
  runner.test(name, { timeout: 120_000 }, async () => {
    const provider = await Provider.start();
    let broker;
    try {
      broker = await TrustingBroker.start(provider, ...keys);
      await body({ provider, broker });
    } finally {
      await broker?.stop();
      await provider.stop();
    }
  });
}

module.exports = {
  AUDIENCE,
  FILE_ISSUER,
  Key,
  OPERATOR,
  READER,
  WRITER,
  credential,
  seconds,
  testWithProvider,
  unsigned,
};
