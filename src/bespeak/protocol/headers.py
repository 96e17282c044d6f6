"""HTTP request headers: their values, and the routing headers, which must agree with the body."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.methods import TARGET_PARAMETERS

if TYPE_CHECKING:
    from bespeak.protocol.callers import Caller

SESSION_HEADER = "Mcp-Session-Id"
"""Names the session of a client of 2025-11-25 or earlier."""

_PREFIX, _SUFFIX = "=?base64?", "?="
_PLAIN = re.compile(r"(?! )[\x20-\x7e]*(?<! )")
_VISIBLE = re.compile(r"[\x20-\x7e]*")
_OWS = b" \t"


class Headers(Mapping[str, str]):
    """The headers of one request. Names are case-insensitive; the values of a repeated header are joined with a comma.

    `raw` holds the headers as ASGI delivers them, with lower-case names. `address` is the client's address, for limits per
    address; `None` if it is not known. `caller` is set when the request has been authenticated.
    """

    __slots__ = ("address", "caller", "last", "raw")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], address: str | None = None) -> None:
        self.address = address
        self.caller: Caller | None = None
        self.raw = raw if isinstance(raw, list) else list(raw)
        self.last = dict(self.raw)
        """The last value of each header, by lower-case name."""

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
        """Return the values of a header that may be repeated, by its lower-case name; `None` if it is absent."""
        if len(self.last) == len(self.raw):
            return self.last.get(key)
        values = [value for other, value in self.raw if other == key]
        return b",".join(values) if values else None

    def only(self, name: str) -> bytes | None:
        """Return the value of a header that may occur once; `None` if it is absent. Raises `MCPError` if it is repeated."""
        key = name.lower().encode()
        value = self.last.get(key)
        if value is None:
            return None
        if len(self.last) != len(self.raw) and sum(other == key for other, _ in self.raw) > 1:
            raise MCPError(HEADER_MISMATCH, f"the header {name} occurs more than once")
        return value.strip(_OWS)


def is_plain(text: str) -> bool:
    """Return whether a text may stand in a header as it is, and is not taken for an encoded one."""
    return _PLAIN.fullmatch(text) is not None and not text.startswith(_PREFIX)


def encode_value(text: str) -> str:
    """Return a text as a header value: unchanged if it is plain ASCII, else in Base64 between markers."""
    if _PLAIN.fullmatch(text) and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    return f"{_PREFIX}{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}{_SUFFIX}"


def decode_value(name: str, value: bytes) -> str:
    """Return the text that a header value stands for. Raises `MCPError` if it cannot be decoded."""
    text = value.decode("latin-1")
    if not _VISIBLE.fullmatch(text):
        raise MCPError(
            HEADER_MISMATCH, f"the header {name} contains characters that are not printable ASCII; encode it in Base64"
        )
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX) and len(text) >= len(_PREFIX) + len(_SUFFIX)):
        return text
    try:
        return base64.b64decode(text[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode()
    except (binascii.Error, ValueError):
        raise MCPError(HEADER_MISMATCH, f"the header {name} does not contain valid Base64 of UTF-8 text") from None


def check_routing(headers: Headers, version: str, method: str, params: Mapping[str, Any]) -> None:
    """Check the routing headers of a request against its body. Raises `MCPError` if they differ."""
    last = headers.last
    named = params.get(TARGET_PARAMETERS[method]) if method in TARGET_PARAMETERS else None
    if (
        len(last) == len(headers.raw)
        and last.get(b"mcp-method") == method.encode()
        and last.get(b"mcp-protocol-version") == version.encode()
        and isinstance(named, str)
        and last.get(b"mcp-name") == named.encode()
        and method.isascii()
        and is_plain(named)
    ):
        return  # nearly every request: each header is there once, and not encoded
    _same(headers, "MCP-Protocol-Version", version, "the protocol version in params._meta")
    _same(headers, "Mcp-Method", method, "the method")
    if isinstance(named, str):
        _same(headers, "Mcp-Name", named, f"params.{TARGET_PARAMETERS[method]}", encoded=True)
    else:  # a fault in the params is reported later
        headers.only("Mcp-Name")


def _same(headers: Headers, name: str, wanted: str, what: str, *, encoded: bool = False) -> None:
    value = headers.only(name)
    if value is None:
        raise MCPError(HEADER_MISMATCH, f"the header {name} is missing; it repeats {what}")
    text = decode_value(name, value) if encoded else value.decode("latin-1")
    if text != wanted or (not encoded and not value.isascii()):
        raise MCPError(HEADER_MISMATCH, f"the header {name} is {text!r}, but {what} is {wanted!r}")


def routing_headers(version: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the routing headers that a client sends with a request."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    named = params.get(TARGET_PARAMETERS[method]) if method in TARGET_PARAMETERS else None
    if isinstance(named, str):
        headers["Mcp-Name"] = encode_value(named)
    return headers
