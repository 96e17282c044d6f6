"""Who may reach a server over HTTP: the origins of web pages, and the names a local server goes by."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bespeak.protocol.headers import Headers

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class TransportSecuritySettings:
    """Which `Host` and `Origin` headers are taken; `:*` at the end stands for any port, and for none.

    By default a server that listens on loopback takes the names of loopback only, and a server takes no web page's
    requests except those of pages on loopback when it listens there itself.
    """

    enable_dns_rebinding_protection: bool = True
    """Whether `Host` is checked. `Origin` always is. A server that does not listen on loopback then needs `allowed_hosts`."""
    allowed_hosts: list[str] = field(default_factory=list[str])
    """Such as `mcp.example.com`; `*` for all."""
    allowed_origins: list[str] = field(default_factory=list[str])
    """Such as `https://app.example.com`; `*` for all."""


class Gate:
    """Says which requests may come in."""

    def __init__(self, host: str, settings: TransportSecuritySettings | None) -> None:
        local = is_loopback(host)
        chosen = settings or TransportSecuritySettings(enable_dns_rebinding_protection=local)
        own = {*LOOPBACK, f"[{host.strip('[]')}]" if ":" in host else host} if local else set[str]()
        if chosen.enable_dns_rebinding_protection and not chosen.allowed_hosts and not local:
            raise ValueError(
                f"TransportSecuritySettings: which names a server on {host!r} goes by is not known here, so the Host header "
                'cannot be checked. Write allowed_hosts=["mcp.example.com"], or enable_dns_rebinding_protection=False to check '
                "the Origin header only"
            )
        hosts = chosen.allowed_hosts or [f"{name}:*" for name in own]
        origins = [origin.rstrip("/") for origin in chosen.allowed_origins]
        if not origins:
            origins = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in own]
        checked = chosen.enable_dns_rebinding_protection and hosts and "*" not in hosts
        self._hosts = _pattern(hosts) if checked else None
        self._origins = _pattern(origins)
        self._any_origin = "*" in origins

    def refusal(self, headers: Headers) -> str | None:
        """Why a request may not come in; `None` if it may."""
        if len(headers.last) != len(headers.raw):
            for name in (b"host", b"origin"):
                if sum(key == name for key, _ in headers.raw) > 1:
                    return f"the header {name.decode().capitalize()} is there twice"
        host, origin = headers.last.get(b"host"), headers.last.get(b"origin")
        name = (host or b"").decode("latin-1").strip(" \t").lower()
        if self._hosts is not None and not self._hosts.fullmatch(name):
            return f"this server does not go by the name {name!r}; see TransportSecuritySettings(allowed_hosts=...)"
        if origin is None or self._any_origin:
            return None
        page = origin.decode("latin-1").strip(" \t").lower()
        if not self._origins.fullmatch(page):
            return f"the origin {page!r} is not allowed; see TransportSecuritySettings(allowed_origins=...)"
        return None


def is_loopback(host: str) -> bool:
    """Whether a server that listens there can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    parts = [
        re.escape(name[:-2]) + r"(?::\d{1,5})?" if name.endswith(":*") else re.escape(name)
        for name in (name.lower() for name in names)
    ]
    return re.compile("|".join(parts) or r"(?!)")
