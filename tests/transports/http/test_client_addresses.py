"""The address of a client: which proxies are believed, hostile headers, and how addresses are counted."""

import ipaddress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak import MCPServer
from bespeak.transports.http.client_addresses import MAX_HOPS, REMEMBERED, ClientAddresses

PROXY = "10.0.0.1"
TRUSTED = ["10.0.0.0/8", "fd00::/8"]
STRANGER = "203.0.113.9"


def scope(peer: str | None, *headers: tuple[str, str | bytes]) -> dict[str, Any]:
    written = [
        (name.lower().encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers
    ]
    return {"client": (peer, 40000) if peer is not None else None, "headers": written}


def of(*headers: tuple[str, str | bytes], peer: str | None = PROXY) -> str | None:
    return ClientAddresses(TRUSTED).of(scope(peer, *headers))


# How an address is counted


@pytest.mark.parametrize(
    ("peer", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", None),
        (None, None),
    ],
)
def test_ipv4_counts_as_it_is_and_ipv6_by_its_first_64_bits(peer: str | None, counted: str | None) -> None:
    addresses = ClientAddresses()
    assert addresses.of(scope(peer)) == counted
    assert addresses.of_peer(peer) == counted
    assert not addresses.is_proxy(peer)


def test_a_scope_without_a_client_has_no_address() -> None:
    assert ClientAddresses(TRUSTED).of({"headers": []}) is None


def test_what_is_kept_about_peers_is_bounded() -> None:
    addresses = ClientAddresses(TRUSTED)
    for number in range(3 * REMEMBERED):
        address = str(ipaddress.IPv4Address(number + 1))
        assert addresses.of(scope(address)) == address
    assert addresses.remembered <= REMEMBERED


# Who is believed


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
def test_a_peer_that_is_not_trusted_is_not_believed(header: str) -> None:
    assert of((header, "for=198.51.100.1" if header == "Forwarded" else "198.51.100.1"), peer=STRANGER) == STRANGER


def test_by_default_nobody_is_believed() -> None:
    assert ClientAddresses().of(scope("127.0.0.1", ("X-Forwarded-For", "198.51.100.1"))) == "127.0.0.1"


@pytest.mark.parametrize(
    ("named", "peer", "trusted"),
    [
        (["10.0.0.0/8"], "10.200.0.1", True),
        (["10.0.0.0/8"], "11.0.0.1", False),
        (["10.0.0.4"], "::ffff:10.0.0.4", True),
        (["::ffff:10.0.0.0/104"], "10.3.0.4", True),
        (["::ffff:10.0.0.4"], "10.0.0.5", False),
        (["::/0"], "10.0.0.4", False),
    ],
)
def test_proxies_are_named_by_address_or_network(named: list[str], peer: str, trusted: bool) -> None:
    assert ClientAddresses(named).is_proxy(peer) is trusted


@pytest.mark.parametrize("name", ["nginx", "*", "10.0.0.1/8", "10.0.0", "", "10.0.0.0/33"])
def test_a_proxy_that_is_not_an_address_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not an IP address or a network. Write an address such as \"10.0.0.4\""
    ) as caught:
        ClientAddresses([name])
    assert repr(name) in str(caught.value)


def test_one_text_instead_of_a_list_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match=r'trusted_proxies must be a list: write \["10.0.0.4"\]'):
        ClientAddresses("10.0.0.4")


def test_the_app_refuses_a_bad_proxy_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="trusted_proxies: 'nginx' is not an IP address"):
        MCPServer("shop").streamable_http_app(trusted_proxies=["nginx"])


# What is forwarded


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (f"198.51.100.1, {STRANGER}", STRANGER),
        (f"198.51.100.1,{STRANGER} , 10.1.1.1", STRANGER),
        (f"{STRANGER}:4711", STRANGER),
        ("[2001:db8::1]:4711", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::/64"),
        ("10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("", PROXY),
        (f"{STRANGER}, junk, 10.1.1.1", "10.1.1.1"),
        (b"\xff\xfe, \x00", PROXY),
    ],
)
def test_x_forwarded_for_is_read_from_the_right_up_to_the_first_stranger(value: str | bytes, counted: str) -> None:
    assert of(("X-Forwarded-For", value)) == counted


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (f'For="{STRANGER}:4711";proto=https;by=10.0.0.1', STRANGER),
        ('for="[2001:db8::1]:4711"', "2001:db8::/64"),
        (f"for=198.51.100.1, for={STRANGER}, for=10.1.1.1;host=x", STRANGER),
        (f'proto=http;host="a,b;for=1.1.1.1";for={STRANGER}', STRANGER),
        (r'for="203.0.11\3.9"', STRANGER),
        ("for=unknown", PROXY),
        (f"for={STRANGER}, proto=https", PROXY),
        (f"for={STRANGER};for=198.51.100.1", PROXY),
        (f"for={STRANGER}" + ";x=y" * 4000, PROXY),
    ],
)
def test_forwarded_is_read_from_the_right_up_to_the_first_stranger(value: str, counted: str) -> None:
    assert of(("Forwarded", value)) == counted


def test_headers_in_several_lines_are_one_list() -> None:
    assert of(("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-For", STRANGER)) == STRANGER
    assert (
        of(("Forwarded", "for=198.51.100.1"), ("Forwarded", f"for={STRANGER}"), ("Forwarded", "for=10.9.9.9"))
        == STRANGER
    )


def test_a_malformed_line_does_not_spoil_the_one_a_proxy_adds() -> None:
    assert of(("Forwarded", 'for="'), ("Forwarded", f"for={STRANGER}")) == STRANGER


def test_a_proxy_that_forwards_nothing_counts_itself() -> None:
    assert of() == PROXY


def test_where_both_headers_are_there_they_must_agree() -> None:
    one, other = ("X-Forwarded-For", f"198.51.100.1, {STRANGER}"), ("Forwarded", f"for={STRANGER}")
    assert of(one, other) == STRANGER
    assert of(("X-Forwarded-For", STRANGER), ("Forwarded", "for=198.51.100.1")) == PROXY


def test_more_proxies_than_anybody_has_are_not_looked_through() -> None:
    many = ", ".join(["198.51.100.1", *["10.1.1.1"] * MAX_HOPS])
    assert of(("X-Forwarded-For", many)) == "10.1.1.1"
    assert of(("X-Forwarded-For", many.replace(", 10.1.1.1", "", 1))) == "198.51.100.1"


# Whatever a stranger writes, in the header that the proxy adds to or in the other one

hostile = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='for=FOR";,\\ \t[]:.0123456789abcdef_%', max_size=60).map(str.encode),
    st.lists(
        st.sampled_from(
            [
                b"10.0.0.1",
                b"198.51.100.1",
                b'for="',
                b"for=10.0.0.1",
                b'"',
                b"\\",
                b",",
                b";",
                b"for=198.51.100.1",
                b'x="',
            ]
        ),
        max_size=8,
    ).map(b",".join),
).filter(lambda value: b"\r" not in value and b"\n" not in value)


@given(hostile)
@example(b'for=198.51.100.1;x="')
@example(b"10.0.0.1, 10.0.0.1")
def test_nothing_a_stranger_writes_before_a_proxys_own_words_hides_it(written: bytes) -> None:
    """A proxy adds the address to the line there is, or in a line of its own."""
    assert of(("X-Forwarded-For", written + b", " + STRANGER.encode())) == STRANGER
    assert of(("X-Forwarded-For", written), ("X-Forwarded-For", STRANGER)) == STRANGER
    assert of(("Forwarded", written), ("Forwarded", f"for={STRANGER}")) == STRANGER
    for own in (f"for={STRANGER}", f'for="{STRANGER}:80"', f'for="{STRANGER}";proto="https"'):
        assert of(("Forwarded", written + b", " + own.encode())) in (STRANGER, PROXY)


@given(hostile)
def test_the_header_a_proxy_does_not_write_takes_nobody_anywhere_else(written: bytes) -> None:
    assert of(("X-Forwarded-For", STRANGER), ("Forwarded", written)) in (STRANGER, PROXY)
    assert of(("Forwarded", f"for={STRANGER}"), ("X-Forwarded-For", written)) in (STRANGER, PROXY)


@given(hostile, hostile)
def test_any_forwarding_header_gives_an_address_and_never_an_error(one: bytes, other: bytes) -> None:
    assert of(("X-Forwarded-For", one), ("Forwarded", other), peer=STRANGER) == STRANGER
    counted = of(("X-Forwarded-For", one), ("Forwarded", other))
    assert counted is not None
    ipaddress.ip_network(counted)
