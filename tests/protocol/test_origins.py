"""Protocol 23.1, design section 8: `Origin` is always checked when sent, `Host` where a server listens on loopback."""

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


# Which addresses are loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "[::1]"])
def test_an_address_of_this_machine_only_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["LOCALHOST", "Localhost", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"])
def test_loopback_written_in_another_way_is_loopback(host: str) -> None:
    # each of them can be bound, and then `Host` must be checked
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "",
        "10.0.0.1",
        "192.168.0.1",
        "1127.0.0.1",
        "127.0.0.1.example.com",
        "localhost.example.com",
        "mcp.acme.example",
    ],
)
def test_an_address_that_others_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


# Host


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1"])
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "LOCALHOST:8000", "127.0.0.1:65535", "[::1]", "[::1]:80", " localhost\t"]
)
def test_a_server_on_loopback_goes_by_the_names_of_loopback(bind: str, host: str) -> None:
    assert refusal(Gate(bind, None), host=host) is None


@pytest.mark.parametrize("bind", ["127.0.0.2", "127.1.2.3"])
def test_a_server_on_another_address_of_loopback_goes_by_that_address(bind: str) -> None:
    assert refusal(Gate(bind, None), host=f"{bind}:8000") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "evil.localhost",
        "localhost:8000.evil.example",
        "localhost:123456",
        "localhost:",
        "localhost:x",
        "localhost:80:80",
        "localhost:-1",
        "localhost@evil.example",
        "xlocalhost",
        "127.0.0.1.evil.example",
        "127x0y0z1",
        "::1",
        "localhost, evil.example",
        "localhost evil.example",
        "localhost\n",
        "localhost:\u00b2",
        "",
        "0.0.0.0",
    ],
)
def test_a_server_on_loopback_goes_by_no_other_name(host: str) -> None:
    said = refusal(Gate(LOCAL, None), host=host)
    name = host.lower()
    assert said == f"this server does not go by the name {name!r}; see TransportSecuritySettings(allowed_hosts=...)"


def test_a_server_on_loopback_serves_nobody_who_gives_no_host() -> None:
    assert "does not go by the name ''" in str(refusal(Gate(LOCAL, None), host=None))


@pytest.mark.parametrize("bind", [PUBLIC, "::", "", "10.0.0.1", "mcp.acme.example"])
@pytest.mark.parametrize("host", ["evil.example", None])
def test_a_server_that_others_reach_takes_any_host(bind: str, host: str | None) -> None:
    assert refusal(Gate(bind, None), host=host) is None


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_where_hosts_are_listed_only_they_are_taken(bind: str) -> None:
    listing = gate(bind, hosts=["MCP.acme.example", "other.example:*", "third.example:8443"])
    for host in ("mcp.acme.example", "other.example", "OTHER.example:1", "third.example:8443"):
        assert refusal(listing, host=host) is None
    for host in ("mcp.acme.example:80", "mcpxacme.example", "third.example", "third.example:84430", "localhost", "*"):
        assert "does not go by the name" in str(refusal(listing, host=host))


def test_the_check_of_hosts_may_be_switched_off() -> None:
    assert refusal(gate(check_host=False), host="evil.example") is None
    assert refusal(gate(check_host=False, hosts=["mcp.acme.example"]), host="evil.example") is None


def test_with_settings_that_list_no_hosts_loopback_still_goes_by_its_names_only() -> None:
    assert refusal(gate(origins=["https://app.example.com"])) is None
    assert "does not go by" in str(refusal(gate(origins=["https://app.example.com"]), host="evil.example"))


@pytest.mark.parametrize("bind", [PUBLIC, "::", "10.0.0.1", "mcp.acme.example"])
def test_a_check_of_hosts_that_would_check_nothing_is_refused_with_what_to_write(bind: str) -> None:
    with pytest.raises(ValueError, match="cannot be checked") as caught:
        gate(bind, origins=["https://app.example.com"])
    assert str(caught.value) == (
        f"TransportSecuritySettings: which names a server on {bind!r} goes by is not known here, so the Host header cannot be "
        'checked. Write allowed_hosts=["mcp.example.com"], or enable_dns_rebinding_protection=False to check the Origin header '
        "only"
    )


def test_a_server_that_others_reach_may_check_origins_only() -> None:
    lenient = gate(PUBLIC, check_host=False, origins=["https://app.example.com"])
    assert refusal(lenient, host="anything.example", origin="https://app.example.com") is None
    assert "is not allowed" in str(refusal(lenient, host="anything.example", origin="https://evil.example"))


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
    "http://localhost/",
    "http://localhost:80/path",
    "file://localhost",
    "localhost",
    "null",
    "",
    "*",
    "http://localhost, https://evil.example",
    "http://localhost https://evil.example",
    "\xe9",
]


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_another_page_may_not(bind: str, origin: str) -> None:
    said = refusal(Gate(bind, None), origin=origin)
    assert said == f"the origin {origin!r} is not allowed; see TransportSecuritySettings(allowed_origins=...)"


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://mcp.acme.example"])
def test_no_page_may_reach_a_server_that_others_reach_unless_it_is_listed(origin: str) -> None:
    assert "is not allowed" in str(refusal(Gate(PUBLIC, None), host="mcp.acme.example", origin=origin))


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_who_sends_no_origin_is_no_page(bind: str) -> None:
    assert refusal(Gate(bind, None)) is None
    assert refusal(gate(bind, hosts=["*"], origins=["https://app.example.com"])) is None


@pytest.mark.parametrize("bind", [LOCAL, PUBLIC])
def test_where_origins_are_listed_only_they_are_taken(bind: str) -> None:
    listing = gate(bind, hosts=["*"], origins=["https://App.example.com", "http://dev.example:*"])
    for origin in (
        "https://app.example.com",
        "HTTPS://APP.EXAMPLE.COM",
        "http://dev.example",
        "http://dev.example:5173",
    ):
        assert refusal(listing, origin=origin) is None
    for origin in (
        *FOREIGN,
        "http://app.example.com",
        "https://app.example.com:444",
        "https://appxexample.com",
        "http://localhost",
    ):
        assert "is not allowed" in str(refusal(listing, origin=origin))


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_star_takes_every_origin(origin: str) -> None:
    assert refusal(gate(PUBLIC, hosts=["*"], origins=["*"]), origin=origin) is None


def test_a_star_among_origins_says_nothing_about_hosts() -> None:
    said = refusal(gate(origins=["*"]), host="evil.example", origin="https://evil.example")
    assert "does not go by the name 'evil.example'" in str(said)


@pytest.mark.parametrize("origin", FOREIGN)
def test_the_origin_is_checked_though_the_check_of_hosts_is_switched_off(origin: str) -> None:
    assert "is not allowed" in str(refusal(gate(check_host=False), origin=origin))
    assert refusal(gate(check_host=False), origin="http://localhost:5173") is None


# Both


@pytest.mark.parametrize(("name", "said"), [(b"host", "Host"), (b"origin", "Origin")])
@pytest.mark.parametrize("settings", [None, TransportSecuritySettings(allowed_origins=["*"])])
def test_a_host_or_an_origin_that_is_there_twice_is_refused(
    name: bytes, said: str, settings: TransportSecuritySettings | None
) -> None:
    line = (name, b"localhost")
    headers = Headers([(b"host", b"localhost"), line, line] if name == b"origin" else [line, line])
    assert Gate(LOCAL, settings).refusal(headers) == f"the header {said} is there twice"


def test_another_header_may_be_there_twice() -> None:
    headers = Headers([(b"host", b"localhost"), (b"accept", b"a"), (b"accept", b"b")])
    assert Gate(LOCAL, None).refusal(headers) is None


def test_a_gate_says_the_same_the_second_time_and_after_any_number_of_others() -> None:
    busy = Gate(LOCAL, None)
    for _ in range(2):
        for number in range(600):  # more than it remembers
            assert f"'{number}.example'" in str(refusal(busy, host=f"{number}.example"))
            assert refusal(busy, host=f"localhost:{number}") is None
            assert f"'http://{number}'" in str(refusal(busy, origin=f"http://{number}"))


def test_what_was_allowed_without_an_origin_is_not_allowed_with_one() -> None:
    busy = Gate(LOCAL, None)
    assert refusal(busy) is None
    assert refusal(busy, origin="https://evil.example") is not None
    assert refusal(busy) is None


NAMES = st.sampled_from([b"host", b"origin", b"accept", b"Host"]) | st.binary(max_size=3)
VALUES = st.binary() | st.sampled_from([b"localhost:1", b"http://localhost", b"null", b"https://app.example.com"])
GATES = [
    Gate(LOCAL, None),
    Gate(PUBLIC, None),
    gate(PUBLIC, hosts=["app.example.com:*"], origins=["https://app.example.com"]),
    gate(PUBLIC, hosts=["*"], origins=["*"]),
    gate(check_host=False),
]


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5), st.sampled_from(GATES))
def test_whatever_the_headers_hold_a_gate_says_yes_or_why_not(raw: list[tuple[bytes, bytes]], one: Gate) -> None:
    said = one.refusal(Headers(raw))
    assert said is None or len(said) > 0


@given(st.binary() | st.text().map(str.encode))
def test_only_a_page_on_loopback_passes_a_gate_on_loopback(origin: bytes) -> None:
    said = Gate(LOCAL, None).refusal(Headers([(b"host", b"localhost"), (b"origin", origin)]))
    assert said is not None or b"localhost" in origin.lower() or b"127.0.0.1" in origin or b"[::1]" in origin
