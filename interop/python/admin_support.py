"""The SDK's administration client, over HTTPS. The broker's certificate authority is all that it is told to trust."""

import os
import uuid

from azure.servicebus.management import ServiceBusAdministrationClient

from support import PREFIX, connection_string


def administer(text=None):
    text = text or connection_string()
    return ServiceBusAdministrationClient.from_connection_string(text, connection_verify=os.environ["RAILBUS_CA"])


def fresh(what):
    """A name that no other test or run has used."""
    return f"{PREFIX}-{what}-{uuid.uuid4().hex[:12]}"


def shown(properties, *names):
    """The named properties, as a dictionary to compare with."""
    return {name: getattr(properties, name) for name in names}
