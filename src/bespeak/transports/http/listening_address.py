"""Whether a server can listen at an address, found out before it starts, and what to do if it cannot."""

import errno
import os
import socket
from contextlib import suppress

IN_USE = (
    "Cannot listen at {address}: the port is in use. Stop the program that uses it, or choose another port: {chosen_by}"
)
CHOSEN_BY = "--port on the command line, port= in run()"
"""How the port of a server is chosen."""
FORBIDDEN = "Cannot listen at {address}: this user may not use the port. Choose one above 1023, such as 8000"
NOT_HERE = (
    "Cannot listen at {address}: this machine does not have the address. Use 127.0.0.1 for clients on this machine, "
    "0.0.0.0 for all"
)
_MESSAGES = {errno.EADDRINUSE: IN_USE, errno.EACCES: FORBIDDEN, errno.EADDRNOTAVAIL: NOT_HERE}


def listening_problem(host: str | None, port: int, chosen_by: str = CHOSEN_BY) -> str | None:
    """Return why a server cannot listen at an address, in one sentence for its user; `None` if it can."""
    address = f"http://{f'[{host}]' if host and ':' in host else host or '0.0.0.0'}:{port}"
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):  # a name that cannot be looked up, or cannot be a name
        return NOT_HERE.format(address=address)
    for family, kind, protocol, _, where in dict.fromkeys(found):
        with suppress(_NoFamily), _made(family, kind, protocol) as tried:
            try:
                tried.bind(where)
            except OSError as error:
                told = _MESSAGES.get(error.errno or 0, f"Cannot listen at {{address}}: {error.strerror or error}")
                return told.format(address=address, chosen_by=chosen_by)
    return None


class _NoFamily(Exception):
    """The machine does not have addresses of this family."""


def _made(family: int, kind: int, protocol: int) -> socket.socket:
    """A socket with the options that an event loop would set, so that it can bind exactly where the loop can."""
    try:
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _NoFamily from error
    if os.name == "posix":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, True)
    return made
