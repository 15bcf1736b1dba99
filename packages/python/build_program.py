"""Puts the program that RAILBUS_BIN names into the wheel, as a script of the environment that it is installed in."""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program = os.environ.get("RAILBUS_BIN", "")
        if not os.access(program, os.X_OK):
            raise SystemExit("RAILBUS_BIN must name the program that goes into the wheel")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"][os.path.abspath(program)] = "railbus"
