"""The SDK's administration client against a broker that listens without TLS.

The client takes the scheme `https` for granted. Its public `transport` option lets requests go by plain
HTTP; nothing else of it is changed.
"""

import uuid

from azure.core.pipeline.transport import RequestsTransport
from azure.servicebus.management import ServiceBusAdministrationClient

from support import PREFIX, connection_string


class PlainHttp(RequestsTransport):
    def send(self, request, **options):
        request.url = request.url.replace("https://", "http://", 1)
        return super().send(request, **options)


def administer(text=None):
    text = text or connection_string()
    return ServiceBusAdministrationClient.from_connection_string(text, transport=PlainHttp())


def fresh(what):
    """A name that no other test or run has used."""
    return f"{PREFIX}-{what}-{uuid.uuid4().hex[:12]}"


def shown(properties, *names):
    """The named properties, as a dictionary to compare with."""
    return {name: getattr(properties, name) for name in names}
