"""One namespace of a broker: entities, messages, keys and fault rules of its own."""

import base64
import http.client
import json
import re
import uuid
from datetime import timedelta
from urllib.parse import quote

KEY = re.compile(r"SharedAccessKeyName=([^;]+);SharedAccessKey=([^;]+)")


class BrokerError(Exception):
    """The broker did not start, or refused a request."""


def request(address, method, path, body=None, headers=None):
    """What the broker answers to a request under `/$railbus/`, read from JSON."""
    connection = http.client.HTTPConnection(address)
    try:
        body = None if body is None else json.dumps(body)
        connection.request(method, f"/$railbus/{path}", body, headers or {})
        response = connection.getresponse()
        answer = response.read().decode()
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        raise BrokerError(answer)
    return json.loads(answer)


def iso(duration):
    """A `timedelta` in ISO 8601; text is left as it is."""
    return f"PT{duration.total_seconds():.3f}S" if isinstance(duration, timedelta) else duration


def create_namespace(address, name=None, *, like="default"):
    """Makes a namespace of the broker at `address`, with the entities of the namespace `like` and no messages.

    The name is a random one unless it is given; `like=None` makes an empty namespace.
    """
    name = name or f"test-{uuid.uuid4().hex}"
    definition = {} if like is None else {"like": like}
    answer = request(address, "PUT", f"namespaces/{quote(name, safe='')}", definition)
    if "connection-string" not in answer:
        raise BrokerError(f"the namespace {name} is there already")
    return Namespace(address, name, answer["connection-string"])


class Namespace:
    """A namespace. Leaving a `with` block deletes it with all that is in it."""

    def __init__(self, address, name, connection_string):
        self.address = address
        self.name = name
        #: What the Azure SDKs take.
        self.connection_string = connection_string

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def delete(self):
        """Deletes the namespace and closes its connections."""
        self._request("DELETE")

    def reset(self):
        """Takes away all messages and fault rules, and makes the entities anew that the namespace was made with."""
        self._request("POST", "/reset")

    def snapshot(self, name="snapshot"):
        """Keeps the entities and messages as they are now, under a name; tells how many there are."""
        return self._request("POST", "/snapshots", {"name": name})

    def restore(self, name="snapshot"):
        """Goes back to what was kept, as often as is wanted. Locks are void then, and links are detached."""
        self._request("POST", "/restore", {"snapshot": name})

    def advance(self, duration):
        """Lets time pass in this namespace alone, as a `timedelta` or in ISO 8601 (`PT5M`).

        What becomes due has happened on return.
        """
        return self._request("POST", "/clock", {"advance": iso(duration)})

    def fault(self, name, effect, **match):
        """Adds a fault rule, such as `fault("busy", {"refuse": "server-busy"}, entity="orders", times=1)`.

        `match` has the members that the broker documents, with `_` for `-`.
        """
        match = {member.replace("_", "-"): value for member, value in match.items()}
        self._request("POST", "/faults", {"name": name, "match": match, "effect": effect})

    def faults(self):
        """The fault rules, each with how many operations it has `matched` and how many failed by it (`injected`)."""
        return self._request("GET", "/faults")["faults"]

    def clear_faults(self):
        """Takes all fault rules away."""
        self._request("DELETE", "/faults")

    def explain(self, entity, sequence=None):
        """Why messages of an entity, or the one with a sequence number, are not delivered."""
        # The name of the key chooses the namespace.
        key = ":".join(KEY.search(self.connection_string).groups())
        headers = {"Authorization": "Basic " + base64.b64encode(key.encode()).decode()}
        query = "" if sequence is None else f"?sequence={int(sequence)}"
        return request(self.address, "GET", f"entities/{quote(entity)}/explain{query}", headers=headers)

    def _request(self, method, path="", body=None):
        return request(self.address, method, f"namespaces/{self.name}{path}", body)
