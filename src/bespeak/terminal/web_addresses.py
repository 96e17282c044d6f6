"""Web addresses that a server sends: parsed as a browser would, and shown as ASCII without spaces."""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote

from bespeak.terminal.safe_text import SHORT, clean


@dataclass(frozen=True, slots=True)
class Address:
    """A URL as a browser would parse it."""

    text: str
    host: str = ""
    warnings: tuple[str, ...] = ()
    can_be_opened: bool = True
    """Whether it is a web address with a valid host."""


_WEB = re.compile(r"(https?):[/\\]*([^/\\?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))


def read_address(url: str) -> Address:
    """Parse a URL into the address that a browser would open, with warnings."""
    whole = re.sub(r"[\t\r\n]", "", url.strip("".join(map(chr, range(0x21)))))
    web = _WEB.fullmatch(whole)
    if web is None:
        return Address(as_ascii(whole), warnings=("this is not an http or https address",), can_be_opened=False)
    scheme, authority, rest = web.groups()
    user, at, place = authority.rpartition("@")
    ending = re.search(r":[0-9]*\Z", place)
    name, port = (place[: ending.start()], ending.group()) if ending else (place, "")
    host = _ascii_host(name)
    valid = re.fullmatch(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]+\]", host)
    warnings = [
        *(["the part before the @ is not the host"] if at else []),
        *(["the host is an international name and may look like another one"] if "xn--" in host else []),
        *(["the host name is not valid"] if not valid else []),
    ]
    text = f"{scheme.lower()}://{as_ascii(user)}{at}{host if valid else as_ascii(name)}{port}{as_ascii(rest)}"
    # Whose host it is stands at its end.
    shown = host if len(host) <= 2 * SHORT else f"…{host[-SHORT:]}"
    return Address(text, shown, tuple(warnings), can_be_opened=valid is not None)


def as_ascii(text: str) -> str:
    """Return the text as part of a URL: everything except visible ASCII is percent-encoded."""
    return quote(text, safe=_PRINTABLE, errors="replace")


def _ascii_host(name: str) -> str:
    """The host name that is looked up: letters that look like others become visible."""
    uncut = clean(unquote(name), len(name))
    plain = unicodedata.normalize("NFKC", uncut).lower().replace("\u3002", ".")
    if len(plain) > 253:  # longer than any name may be, and slow to write down
        return as_ascii(plain)
    labels = unicodedata.normalize("NFKC", plain).split(".")
    return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}" for label in labels)
