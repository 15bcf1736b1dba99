"""The network of these tests is their own, so the image's ports are free and reach nobody else."""

import fcntl
import socket
import struct

import pytest

from image import Image

pytest_plugins = ["cloud"]

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


@pytest.fixture(scope="session", autouse=True)
def loopback():
    """A new network has a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("16xH", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


@pytest.fixture
def image(tmp_path):
    # The image's user has to get through to it.
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    return Image(tmp_path / "root")
