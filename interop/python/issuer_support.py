"""A provider of OpenID Connect, written for these tests, and a broker that trusts it.

The provider serves a discovery document and a JWK set on loopback, and signs tokens. The broker has it as a configured
issuer, and a second one whose keys are in a file. Programs get their tokens by an ordinary credential of the SDK.
"""

import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from azure.core.credentials import AccessToken
from azure.servicebus import ServiceBusClient
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from virtual_clock import ENTITIES, Broker

SCOPES = ["https://servicebus.azure.net/.default", "https://servicebus.azure.net//.default"]
AUDIENCE = "api://orders"
DISCOVERY = "/tenant/.well-known/openid-configuration"
FILE_ISSUER = "https://keys.example"
HOUR = 3600

CONFIGURATION = ENTITIES / "issuers.toml"

WRITER = {"roles": ["Orders.Write"]}
READER = {"scp": "openid orders.read"}
OPERATOR = {"groups": ["everyone", "operators"]}
WORKER = {"sub": "worker"}


class Key:
    """A pair of keys; its public half goes into a JWK set."""

    def __init__(self, name, algorithm="RS256"):
        self.name = name
        self.algorithm = algorithm
        if algorithm == "RS256":
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            public = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            self.private = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.public = {**public, "kid": name, "use": "sig", "alg": algorithm}

    def sign(self, claims):
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers={"kid": self.name})


def key_set(*keys):
    return {"keys": [key.public for key in keys]}


class Credential:
    """What an SDK asks for tokens: each is made anew, from the claims of a user or a program."""

    def __init__(self, key, issuer, claims, **more):
        self.key = key
        self.claims = {"iss": issuer, "aud": AUDIENCE, **claims, **more}

    def get_token(self, *scopes, **_options):
        assert scopes[0] in SCOPES or scopes[0].startswith("https://localhost"), scopes
        expires = int(time.time()) + HOUR
        return AccessToken(self.token({"exp": expires, **self.claims}), expires)

    def token(self, claims):
        return self.key.sign(claims)


class Unsigned(Credential):
    """Tokens that say of themselves that they need no signature."""

    def token(self, claims):
        return jwt.encode(claims, None, algorithm="none")


class Opaque(Credential):
    """Tokens that are no JWTs."""

    def token(self, claims):
        return "an-opaque-token"


class Provider:
    """Serves the public halves of an RSA and an elliptic key, and signs with them."""

    def __init__(self):
        self.keys = {"RS256": Key("first"), "ES256": Key("second", "ES256")}
        self.paths = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.paths.append(self.path)
                documents = {DISCOVERY: provider.discovery(), "/tenant/keys": key_set(*provider.keys.values())}
                document = documents.get(self.path)
                body = json.dumps(document).encode()
                self.send_response(404 if document is None else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}/tenant"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def discovery(self):
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}

    def credential(self, claims, algorithm="RS256", **more):
        """Of a program or a user with these claims."""
        return Credential(self.keys[algorithm], self.issuer, claims, **more)


class Trusting:
    """A broker that trusts a provider, and keys in a file; and the provider."""

    def __init__(self, broker, provider, authority, file):
        self.broker = broker
        self.provider = provider
        self.authority = str(authority)
        self.file = file
        self.port = broker.address.rpartition(":")[2]

    def client(self, credential, **options):
        endpoint = f"sb://localhost:{self.port}"
        options = {"connection_verify": self.authority, "custom_endpoint_address": endpoint, **options}
        return ServiceBusClient("localhost", credential, **options)

    def write_keys(self, *keys):
        """Replaces the file as a whole, so that it is never read half written."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(key_set(*keys)))
        os.replace(new, self.file)


@contextmanager
def trusting(directory, key):
    """A broker with the queues of clock.json, whose authority and keys are in `directory`; `key` is in its file."""
    with Provider() as provider:
        file = directory / "keys.json"
        file.write_text(json.dumps(key_set(key)))
        settings = directory / "railbus.toml"
        text = CONFIGURATION.read_text().replace("ISSUER", provider.issuer).replace("KEYS_FILE", str(file))
        settings.write_text(text)
        authority = directory / "tls"
        with Broker(options=["--config", str(settings), "--tls-dir", str(authority)]) as broker:
            yield Trusting(broker, provider, authority / "ca.pem", file)


def bad_credentials(world):
    """Each with the text that refuses it."""
    issuer = world.provider.issuer
    key = world.provider.keys["RS256"]
    late = int(time.time()) - 600
    return {
        "unknown issuer": (Credential(key, "https://evil.example", OPERATOR), "IssuerNotFound"),
        "another key of that name": (Credential(Key("first"), issuer, OPERATOR), "InvalidSignature"),
        "key of another issuer": (Credential(key, FILE_ISSUER, {"roles": ["Manage"]}), "InvalidSignature"),
        "wrong audience": (Credential(key, issuer, OPERATOR, aud="https://servicebus.azure.net"), "InvalidAudience"),
        "expired": (Credential(key, issuer, OPERATOR, exp=late), "ExpiredToken"),
        "not yet": (Credential(key, issuer, OPERATOR, nbf=int(time.time()) + 600), "InvalidToken"),
        "unsigned": (Unsigned(key, issuer, OPERATOR), "MalformedToken"),
        "no JWT": (Opaque(key, issuer, OPERATOR), "MalformedToken"),
    }
