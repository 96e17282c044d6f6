"""Protocol 23.1, design section 8: `Origin` is always checked if sent, `Host` if a server listens on loopback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.headers import Headers
from bespeak.protocol.origins import Gate, TransportSecuritySettings, is_loopback

LOCAL = "127.0.0.1"


PUBLIC = "0.0.0.0"


def refusal(gate: Gate, *, host: str | None = "localhost:8000", origin: str | None = None) -> str | None:
    pairs = [(b"host", host), (b"origin", origin), (b"accept", "*/*")]
    return gate.refusal(Headers([(name, value.encode("latin-1")) for name, value in pairs if value is not None]))


def gate(
    host: str = LOCAL, *, check_host: bool = True, hosts: list[str] | None = None, origins: list[str] | None = None
) -> Gate:
    return Gate(host, TransportSecuritySettings(check_host, hosts or [], origins or []))


def not_allowed(host: str) -> str:
    return f"the host {host!r} is not allowed; see TransportSecuritySettings(allowed_hosts=...)"


# Which addresses are loopback


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "Localhost", "127.0.0.1", "127.255.255.254"),
        *("::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"),
    ],
)
def test_an_address_that_only_this_machine_can_reach_is_loopback(host: str) -> None:
    # each of them can be bound, and then `Host` must be checked
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com"])
def test_an_address_that_others_can_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


# Host


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:65535", "[::1]:80", " localhost\t"])
def test_a_server_on_loopback_accepts_the_names_of_loopback(bind: str, host: str) -> None:
    assert refusal(Gate(bind, None), host=host) is None


def test_a_server_on_another_loopback_address_accepts_that_address() -> None:
    assert refusal(Gate("127.1.2.3", None), host="127.1.2.3:8000") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8000",
        "localhost.evil.example",
        "evil.localhost",
        "localhost:8000.evil.example",
        "localhost:123456",
        "localhost:",
        "localhost:80:80",
        "localhost@evil.example",
        "xlocalhost",
        "127x0y0z1",
        "::1",
        "localhost, evil.example",
        "localhost\n",
        "localhost:\u00b2",
        "",
        "0.0.0.0",
    ],
)
def test_a_server_on_loopback_accepts_no_other_name(host: str) -> None:
    assert refusal(Gate(LOCAL, None), host=host) == not_allowed(host)


def test_a_server_on_loopback_refuses_a_request_without_a_host() -> None:
    assert refusal(Gate(LOCAL, None), host=None) == not_allowed("")


@pytest.mark.parametrize("bind", [PUBLIC, "::", "", "mcp.acme.example"])
@pytest.mark.parametrize("host", ["evil.example", None])
def test_a_server_that_others_can_reach_accepts_any_host(bind: str, host: str | None) -> None:
    assert refusal(Gate(bind, None), host=host) is None


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_if_hosts_are_listed_only_they_are_accepted(bind: str) -> None:
    listing = gate(bind, hosts=["MCP.acme.example", "other.example:*", "third.example:8443"])
    for host in ("mcp.acme.example", "other.example", "OTHER.example:1", "third.example:8443"):
        assert refusal(listing, host=host) is None
    for host in ("mcp.acme.example:80", "mcpxacme.example", "third.example", "third.example:84430", "localhost", "*"):
        assert refusal(listing, host=host) == not_allowed(host)


def test_the_check_of_hosts_may_be_switched_off() -> None:
    assert refusal(gate(check_host=False), host="evil.example") is None
    assert refusal(gate(check_host=False, hosts=["mcp.acme.example"]), host="evil.example") is None


def test_settings_without_hosts_still_accept_only_the_names_of_loopback_there() -> None:
    assert refusal(gate(origins=["https://app.example.com"])) is None
    assert refusal(gate(origins=["https://app.example.com"]), host="evil.example") == not_allowed("evil.example")


def test_a_check_of_hosts_that_would_check_nothing_is_refused_with_what_to_set() -> None:
    with pytest.raises(ValueError, match="cannot be checked") as caught:
        gate(PUBLIC, origins=["https://app.example.com"])
    assert str(caught.value) == (
        "TransportSecuritySettings: the Host header cannot be checked, because the host names of a server on '0.0.0.0' are "
        'not known. Set allowed_hosts=["mcp.example.com"], or set enable_dns_rebinding_protection=False to check the Origin '
        "header only"
    )


# Origin


@pytest.mark.parametrize(
    "origin",
    ["http://localhost", "http://localhost:5173", "https://127.0.0.1:1", "HTTP://[::1]:80", " http://localhost:3000 "],
)
def test_a_page_on_loopback_may_reach_a_server_on_loopback(origin: str) -> None:
    assert refusal(Gate(LOCAL, None), origin=origin) is None


FOREIGN = [
    "https://evil.example",
    "http://localhost.evil.example",
    "http://localhost:80@evil.example",
    "http://localhost:123456",
    "http://localhost:80/path",
    "file://localhost",
    "null",
    "",
    "*",
    "http://localhost, https://evil.example",
    "\xe9",
]


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("one", [Gate(LOCAL, None), Gate(PUBLIC, None), gate(check_host=False)])
def test_a_page_of_any_other_origin_is_refused(one: Gate, origin: str) -> None:
    said = f"the origin {origin!r} is not allowed; see TransportSecuritySettings(allowed_origins=...)"
    assert refusal(one, origin=origin) == said


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://mcp.acme.example"])
def test_no_page_may_reach_a_server_that_others_can_reach_unless_it_is_listed(origin: str) -> None:
    assert "is not allowed" in str(refusal(Gate(PUBLIC, None), host="mcp.acme.example", origin=origin))


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_a_request_without_an_origin_does_not_come_from_a_page(bind: str) -> None:
    assert refusal(Gate(bind, None)) is None
    assert refusal(gate(bind, hosts=["*"], origins=["https://app.example.com"])) is None


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_if_origins_are_listed_only_they_are_accepted(bind: str) -> None:
    listing = gate(bind, hosts=["*"], origins=["https://App.example.com", "http://dev.example:*"])
    for origin in ("HTTPS://APP.EXAMPLE.COM", "http://dev.example", "http://dev.example:5173"):
        assert refusal(listing, origin=origin) is None
    others = ["http://app.example.com", "https://app.example.com:444", "https://appxexample.com", "http://localhost"]
    for origin in (*FOREIGN, *others):
        assert "is not allowed" in str(refusal(listing, origin=origin))


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_star_accepts_every_origin(origin: str) -> None:
    assert refusal(gate(PUBLIC, hosts=["*"], origins=["*"]), origin=origin) is None


def test_a_star_among_origins_does_not_apply_to_hosts() -> None:
    said = refusal(gate(origins=["*"]), host="evil.example", origin="https://evil.example")
    assert said == not_allowed("evil.example")


# Both


@pytest.mark.parametrize("name", ["Host", "Origin"])
@pytest.mark.parametrize("settings", [None, TransportSecuritySettings(allowed_origins=["*"])])
def test_a_repeated_host_or_origin_is_refused(name: str, settings: TransportSecuritySettings | None) -> None:
    line = (name.lower().encode(), b"localhost")
    headers = Headers([(b"host", b"localhost"), line, line] if name == "Origin" else [line, line])
    assert Gate(LOCAL, settings).refusal(headers) == f"the header {name} occurs more than once"


def test_another_header_may_be_repeated() -> None:
    headers = Headers([(b"host", b"localhost"), (b"accept", b"a"), (b"accept", b"b")])
    assert Gate(LOCAL, None).refusal(headers) is None


@given(st.binary() | st.text().map(str.encode))
def test_only_a_page_on_loopback_passes_a_gate_on_loopback(origin: bytes) -> None:
    said = Gate(LOCAL, None).refusal(Headers([(b"host", b"localhost"), (b"origin", origin)]))
    assert said is not None or b"localhost" in origin.lower() or b"127.0.0.1" in origin or b"[::1]" in origin
