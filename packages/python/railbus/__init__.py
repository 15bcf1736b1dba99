"""A Railbus broker for the time of a test.

`start()` returns a broker that keeps its messages in a temporary directory and listens on a free port. It ends
with this process, also when that is killed.
"""

from .broker import Broker, start
from .namespace import BrokerError, Namespace, create_namespace
from .program import find_program

__all__ = ["Broker", "BrokerError", "Namespace", "create_namespace", "find_program", "start"]
