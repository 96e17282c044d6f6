"""Ports that are kept for a storm: a worker that was killed must find its own free, and never meet that of another storm."""

import contextlib
import random
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def reserved_ports(count: int) -> Generator[list[int]]:
    """Keep so many ports on loopback while the block is open. Only servers that reuse addresses, as ours do, can listen on them.

    They are ports that the system never gives to outgoing connections.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = random.randrange(lowest // 2, lowest)
            place = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                place.bind(("127.0.0.1", port))  # fails if somebody else has reserved it
                place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                ports.append(port)
        yield ports
