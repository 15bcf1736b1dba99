"""The broker's development issuer, found as an unchanged program finds it."""

import os
import re
import subprocess


class OtherAudience:
    """A credential whose tokens are for another service."""

    def __init__(self, credential):
        self.credential = credential

    def get_token(self, *_scopes, **options):
        return self.credential.get_token("https://vault.azure.net/.default", **options)


def variables(port=None):
    """What `railbus identity env` says of the suite's broker, or of the one at `port`, by name."""
    port = port or os.environ["RAILBUS_PORT"]
    command = [os.environ["RAILBUS_BIN"], "identity", "env", "--listen", f"127.0.0.1:{port}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^export (\w+)=(\S+)$", printed, re.MULTILINE))
    assert set(found) == {"IDENTITY_ENDPOINT", "IDENTITY_HEADER"}
    return found
