"""The address of the client that a request comes from, directly or through a trusted proxy."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bespeak.transports.http.asgi import Scope

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_HOPS = 32
"""How many proxies in a row are followed."""
MAX_LINE = 8192
"""A longer `Forwarded` header is not read."""
REMEMBERED = 4096
"""How many parsed addresses of peers are cached: most requests come from the same few."""

_FORWARDED_PAIR = re.compile(
    rb"[ \t]*(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)="
    rb'(?:(?P<token>[!#$%&\'*+.^_`|~0-9A-Za-z-]+)|"(?P<quoted>(?:[^"\\]|\\.)*)")[ \t]*(?P<end>[;,]|\Z)',
    re.DOTALL,
)
_WITH_PORT = re.compile(r"(?P<four>[0-9.]+):[0-9]{1,5}|\[(?P<six>[0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class _Peer:
    counted: str | None
    trusted: bool


_NOBODY = _Peer(None, trusted=False)


class ClientAddresses:
    """Finds the address for which a request is counted.

    Forwarded addresses are used only if they come from a trusted proxy.
    """

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        self._networks = tuple(_networks(trusted_proxies))
        self._peers: dict[str, _Peer] = {}

    def of(self, scope: Scope) -> str | None:
        """Return the address that a request comes from: IPv4 as it is, IPv6 as its /64, `None` if there is none.

        It is the address of the peer, or the one that a trusted proxy forwards. Forwarded addresses are read from the
        right, where a proxy appends its own entry. An entry that cannot be read was not written by a trusted proxy, and
        ends the search.
        """
        client = scope.get("client")
        if not client:
            return None
        peer = self._peers.get(client[0]) or self._read(client[0])
        if not peer.trusted:
            return peer.counted
        return self._forwarded(scope["headers"], peer.counted)

    def of_peer(self, host: str | None) -> str | None:
        """Return the address for which a connection is counted: that of its other end."""
        return self._read(host).counted if host else None

    def is_proxy(self, host: str | None) -> bool:
        """Return whether the other end of a connection is a trusted proxy, which connects for many clients."""
        return bool(host) and self._read(host).trusted

    @property
    def remembered(self) -> int:
        """The number of cached addresses."""
        return len(self._peers)

    def _read(self, host: str) -> _Peer:
        peer = self._peers.get(host)
        if peer is None:
            address = _address(host)
            peer = _NOBODY if address is None else _Peer(_counted(address), self._trusts(address))
            if len(self._peers) >= REMEMBERED:
                self._peers.clear()
            self._peers[host] = peer
        return peer

    def _trusts(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._networks)

    def _forwarded(self, headers: Iterable[tuple[bytes, bytes]], peer: str | None) -> str | None:
        ours = [(name, value) for name, value in headers if name in (b"x-forwarded-for", b"forwarded")]
        commas = [value for name, value in ours if name == b"x-forwarded-for"]
        pairs = [value for name, value in ours if name == b"forwarded"]
        if not pairs:
            return self._last_stranger(_listed(commas), peer)
        found = self._last_stranger(_paired(pairs), peer)
        # A proxy writes one of the two and passes the other on as it came. Nobody can say here which it is.
        if commas and found != self._last_stranger(_listed(commas), peer):
            return peer
        return found

    def _last_stranger(self, hops: Iterator[Address | None], peer: str | None) -> str | None:
        """The first hop from the right that is not a trusted proxy; if there is none, the last one that is."""
        for hop, _ in zip(hops, range(MAX_HOPS), strict=False):
            if hop is None:
                return peer
            peer = _counted(hop)
            if not self._trusts(hop):
                return peer
        return peer


def _networks(named: Sequence[str]) -> Iterator[Network]:
    if isinstance(named, str):
        raise ValueError(f'trusted_proxies must be a list: write ["{named}"]')
    for name in named:
        try:
            network = ipaddress.ip_network(name)
        except ValueError:
            raise ValueError(
                f'trusted_proxies: {name!r} is not an IP address or a network. Write an address such as "10.0.0.4", or the '
                'first address of a network with its length, such as "10.0.0.0/8"'
            ) from None
        mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
        if mapped is not None and network.prefixlen >= 96:
            network = ipaddress.ip_network((mapped, network.prefixlen - 96))
        yield network


def _listed(lines: Sequence[bytes]) -> Iterator[Address | None]:
    """The addresses of `X-Forwarded-For`, from the right; `None` for what is not one."""
    for line in reversed(lines):
        for item in reversed(line.rsplit(b",", MAX_HOPS)):
            yield _hop(item.decode("latin-1").strip(" \t"))


def _paired(lines: Sequence[bytes]) -> Iterator[Address | None]:
    """The addresses of `Forwarded` (RFC 7239), from the right; `None` for what is not one."""
    for line in reversed(lines):
        elements = _elements(line)
        if elements is None:
            yield None
            return
        for element in reversed(elements):
            yield _hop(element) if element is not None else None


def _elements(line: bytes) -> list[str | None] | None:
    """What each element of a `Forwarded` header says in `for`; `None` if the header is malformed.

    One stray quotation mark, which anybody can send, changes what the rest means. So all of it must be well formed.
    """
    if len(line) > MAX_LINE:
        return None
    elements: list[str | None] = []
    place, named = 0, dict[bytes, str]()
    while True:
        pair = _FORWARDED_PAIR.match(line, place)
        if pair is None:
            return None
        name, quoted = pair["name"].lower(), pair["quoted"]
        if name in named:
            return None
        value: bytes = pair["token"] if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted, flags=re.DOTALL)
        named[name] = value.decode("latin-1")
        place = pair.end()
        if pair["end"] != b";":
            elements.append(named.get(b"for"))
            named = {}
        if not pair["end"]:
            return elements


def _hop(text: str) -> Address | None:
    with_port = _WITH_PORT.fullmatch(text)
    return _address((with_port["four"] or with_port["six"]) if with_port else text)


def _address(text: Any) -> Address | None:
    """The address in a text, as IPv4 where it is an IPv4 address written as IPv6; `None` if the text is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _counted(address: Address) -> str:
    """A /64 of IPv6 is what one customer gets: its addresses are as good as one."""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
