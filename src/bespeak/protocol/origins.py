"""Checks the `Host` and `Origin` headers of HTTP requests: protection against DNS rebinding and foreign web pages."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bespeak.protocol.headers import Headers

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class TransportSecuritySettings:
    """Which `Host` and `Origin` headers are accepted. `:*` at the end of an entry means any port or none.

    By default, a server that listens on loopback accepts only loopback names as `Host`, and only pages on loopback as
    `Origin`. Any other server does not check `Host` by default and rejects the requests of all web pages.
    """

    enable_dns_rebinding_protection: bool = True
    """Whether `Host` is checked. `Origin` is always checked. If set, a server that does not listen on loopback must name its
    `allowed_hosts`."""
    allowed_hosts: list[str] = field(default_factory=list[str])
    """Such as `mcp.example.com`; `*` allows every host."""
    allowed_origins: list[str] = field(default_factory=list[str])
    """Such as `https://app.example.com`; `*` allows every origin."""


class Gate:
    """Decides which requests are let in, by their `Host` and `Origin` headers."""

    def __init__(self, host: str, settings: TransportSecuritySettings | None) -> None:
        local = is_loopback(host)
        chosen = settings or TransportSecuritySettings(enable_dns_rebinding_protection=local)
        own = {*LOOPBACK, f"[{host.strip('[]')}]" if ":" in host else host} if local else set[str]()
        if chosen.enable_dns_rebinding_protection and not chosen.allowed_hosts and not local:
            raise ValueError(
                f"TransportSecuritySettings: the Host header cannot be checked, because the host names of a server on {host!r} "
                'are not known. Set allowed_hosts=["mcp.example.com"], or set enable_dns_rebinding_protection=False to check '
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
        """Return why a request is refused; `None` if it is let in."""
        if len(headers.last) != len(headers.raw):
            for name in (b"host", b"origin"):
                if sum(key == name for key, _ in headers.raw) > 1:
                    return f"the header {name.decode().capitalize()} occurs more than once"
        host, origin = headers.last.get(b"host"), headers.last.get(b"origin")
        name = (host or b"").decode("latin-1").strip(" \t").lower()
        if self._hosts is not None and not self._hosts.fullmatch(name):
            return f"the host {name!r} is not allowed; see TransportSecuritySettings(allowed_hosts=...)"
        if origin is None or self._any_origin:
            return None
        page = origin.decode("latin-1").strip(" \t").lower()
        if not self._origins.fullmatch(page):
            return f"the origin {page!r} is not allowed; see TransportSecuritySettings(allowed_origins=...)"
        return None


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on `host` is reachable from the same machine only."""
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
