"""The image without a container engine: what deploy/Dockerfile says, read from it, and the files of its last stage.

The base image holds the C and C++ libraries; those that the program asks for are taken from this machine.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKERFILE = REPOSITORY / "deploy/Dockerfile"
CONFIG = "/ServiceBus_Emulator/ConfigFiles/Config.json"
# What distroless/cc has: glibc, and the run-time libraries of gcc and g++.
BASE_LIBRARIES = {"ld-linux-x86-64.so", "ld-linux-aarch64.so", "libc.so", "libdl.so", "libgcc_s.so", "libm.so",
                  "libpthread.so", "librt.so", "libstdc++.so"}


class Image:
    def __init__(self, root):
        self.root = Path(root)
        stage = last_stage(DOCKERFILE.read_text())
        self.environment = dict(pair.split("=", 1) for line in values(stage, "ENV") for pair in line.split())
        self.user = values(stage, "USER")[0]
        self.ports = {int(port) for port in values(stage, "EXPOSE")[0].split()}
        self.entrypoint = words(values(stage, "ENTRYPOINT")[0])
        self.command = words(values(stage, "CMD")[0])
        self.health_check = words(values(stage, "HEALTHCHECK")[0].split(" CMD ")[1])
        self.fill()

    def fill(self):
        """What the COPY of the last stage brings, and the libraries of the base image that the program needs."""
        program = self.put(os.environ.get("RAILBUS_PROGRAM", os.environ["RAILBUS_BIN"]), "/usr/bin/railbus")
        subprocess.run(["strip", program], check=True)
        self.put(REPOSITORY / "deploy/Config.json", CONFIG)
        self.libraries = libraries(program)
        for library in self.libraries:
            self.put(library, library)
        data = self.root / "var/lib/railbus"
        data.mkdir(parents=True, mode=0o700)
        user, group = self.user.split(":")
        os.chown(data, int(user), int(group))

    def put(self, source, path):
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        return shutil.copy(source, target)

    def added_bytes(self):
        """What the image adds to its base."""
        return sum((self.root / path.lstrip("/")).stat().st_size for path in ("/usr/bin/railbus", CONFIG))

    def inside(self, command):
        """How `command` is started within the image, as its user."""
        return [shutil.which("chroot", path="/usr/sbin:/usr/bin"), f"--userspec={self.user}", str(self.root), *command]


def last_stage(text):
    """The instructions of the last stage, one a line, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return re.split(r"^FROM .*$", joined, flags=re.MULTILINE)[-1].splitlines()


def values(stage, instruction):
    return [line.split(None, 1)[1] for line in stage if line.startswith(f"{instruction} ")]


def words(text):
    """The JSON list of an ENTRYPOINT or CMD."""
    return re.findall(r'"([^"]*)"', text)


def libraries(program):
    """What the loader takes in for `program`."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def base_name(library):
    """`libc.so` of /lib/x86_64-linux-gnu/libc.so.6."""
    return re.sub(r"\.so[.\d]*$", ".so", Path(library).name)
