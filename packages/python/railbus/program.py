"""Where the program `railbus` is."""

import os
import shutil
import sys
import sysconfig


def find_program():
    """The path of the program: `RAILBUS_BIN`, or the one that was installed with this package, or one on `PATH`."""
    named = os.environ.get("RAILBUS_BIN")
    if named:
        return named
    for path in installed_paths():
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("railbus")
    if found:
        return found
    raise FileNotFoundError(
        "the program `railbus` is missing: install the wheel for this system and processor, "
        "put the program on PATH, or name it in RAILBUS_BIN"
    )


def installed_paths():
    """Where installers put scripts: in an environment, for one user, or beside a `--target` directory's packages."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")),
        os.path.join(packages, "bin"),
    ]
    return [os.path.join(folder, "railbus") for folder in folders]
