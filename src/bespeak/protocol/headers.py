"""The headers of HTTP requests: reading and writing their values, and holding the routing ones against the body."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bespeak.protocol.errors import HEADER_MISMATCH, MCPError

NAMED_BY: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods that carry `Mcp-Name`, with the param it repeats."""

SESSION_HEADER = "Mcp-Session-Id"
"""Carries the session of a client of an older revision."""

_PREFIX, _SUFFIX = "=?base64?", "?="
_PLAIN = re.compile(r"(?! )[\x20-\x7e]*(?<! )")
_VISIBLE = re.compile(r"[\x20-\x7e]*")
_OWS = b" \t"


class Headers(Mapping[str, str]):
    """The headers of one request, by name in any case. A header sent twice reads as one, joined with a comma.

    `raw` is what ASGI has: names in lower case, values as they came. `address` is the one the request came from, for bounds
    that hold for each address; `None` if it is not known.
    """

    __slots__ = ("address", "last", "raw")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], address: str | None = None) -> None:
        self.address = address
        self.raw = raw if isinstance(raw, list) else list(raw)
        self.last = dict(self.raw)
        """The last value of each, by name in lower case."""

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode("latin-1", "replace")
        values = [value.decode("latin-1").strip(" \t") for key, value in self.raw if key.lower() == wanted]
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter({key.decode("latin-1").lower(): None for key, _ in self.raw})

    def __len__(self) -> int:
        return len({key.lower() for key, _ in self.raw})

    def __repr__(self) -> str:
        return f"<Headers {', '.join(self)}>"  # their values may be secrets

    def joined(self, key: bytes) -> bytes | None:
        """The values of a header that may be there several times, by its name in lower case; `None` if there is none."""
        if len(self.last) == len(self.raw):
            return self.last.get(key)
        values = [value for other, value in self.raw if other == key]
        return b",".join(values) if values else None

    def only(self, name: str) -> bytes | None:
        """The one value of a header that routes a request; `None` if it is not there. Raises `MCPError` if it is twice."""
        key = name.lower().encode()
        value = self.last.get(key)
        if value is None:
            return None
        if len(self.last) != len(self.raw) and sum(other == key for other, _ in self.raw) > 1:
            raise MCPError(HEADER_MISMATCH, f"the header {name} is there twice")
        return value.strip(_OWS)


def encode_value(text: str) -> str:
    """A text as a header carries it: as it is if that is safe, else in Base64 between markers."""
    if _PLAIN.fullmatch(text) and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    return f"{_PREFIX}{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}{_SUFFIX}"


def decode_value(name: str, value: bytes) -> str:
    """The text a header's value stands for. Raises `MCPError` if it cannot be read."""
    text = value.decode("latin-1")
    if not _VISIBLE.fullmatch(text):
        raise MCPError(HEADER_MISMATCH, f"the header {name} holds more than plain ASCII; encode it in Base64")
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX) and len(text) >= len(_PREFIX) + len(_SUFFIX)):
        return text
    try:
        return base64.b64decode(text[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode()
    except (binascii.Error, ValueError):
        raise MCPError(HEADER_MISMATCH, f"the header {name} holds no valid Base64 of UTF-8") from None


def check_routing(headers: Headers, version: str, method: str, params: Mapping[str, Any]) -> None:
    """Hold the headers every request repeats against its body. Raises `MCPError`."""
    last = headers.last
    named = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    if (
        len(last) == len(headers.raw)
        and last.get(b"mcp-method") == method.encode()
        and last.get(b"mcp-protocol-version") == version.encode()
        and isinstance(named, str)
        and last.get(b"mcp-name") == named.encode()
        and method.isascii()
        and _PLAIN.fullmatch(named)
        and not named.startswith(_PREFIX)
    ):
        return  # nearly every request: everything is there, once, and as it is
    _same(headers, "MCP-Protocol-Version", version, "the protocol version in params._meta")
    _same(headers, "Mcp-Method", method, "the method")
    if isinstance(named, str):
        _same(headers, "Mcp-Name", named, f"params.{NAMED_BY[method]}", encoded=True)
    else:  # if the params are at fault, that is said later
        headers.only("Mcp-Name")


def _same(headers: Headers, name: str, wanted: str, what: str, *, encoded: bool = False) -> None:
    value = headers.only(name)
    if value is None:
        raise MCPError(HEADER_MISMATCH, f"the header {name} is missing; it repeats {what}")
    text = decode_value(name, value) if encoded else value.decode("latin-1")
    if text != wanted or (not encoded and not value.isascii()):
        raise MCPError(HEADER_MISMATCH, f"the header {name} is {text!r}, but {what} is {wanted!r}")


def routing_headers(version: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The headers a client sends with a request."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    named = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    if isinstance(named, str):
        headers["Mcp-Name"] = encode_value(named)
    return headers
