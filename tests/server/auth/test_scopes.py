"""Names of scopes, and who may use what."""

from dataclasses import dataclass
from typing import Any

import pytest

from bespeak.protocol.callers import AccessToken, Caller
from bespeak.protocol.headers import Headers
from bespeak.server.auth.scopes import may_use, scope_names, scopes_of


@dataclass(frozen=True)
class Thing:
    scopes: tuple[str, ...] = ()


def headers(*scopes: str, authenticated: bool = True) -> Headers:
    found = Headers([])
    token = AccessToken(token="t", client_id="c", scopes=list(scopes))
    found.caller = Caller("p", frozenset(scopes), token) if authenticated else None
    return found


@pytest.mark.parametrize("scopes", ["admin", b"admin", 7])
def test_scopes_are_a_list(scopes: Any) -> None:
    with pytest.raises(TypeError, match=r"scopes must be a list of scope names, such as scopes=\['orders:read'\]"):
        scope_names(scopes)


@pytest.mark.parametrize("name", ["", "a b", 'a"', "a\\b", "ä", "a\n", 7, None])
def test_a_name_that_cannot_be_sent_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="is not a scope name: use printable ASCII"):
        scope_names([name])


def test_names_are_kept_in_order_and_once() -> None:
    assert scope_names(["b", "a", "b", "https://example.com/x!"]) == ("b", "a", "https://example.com/x!")
    assert scope_names(None) == ()


@pytest.mark.parametrize(
    ("needed", "had", "allowed"),
    [
        ((), (), True),
        (("a",), ("a", "b"), True),
        (("a", "b"), ("a",), False),
        (("a",), ("A",), False),
        (("a",), (), False),
    ],
)
def test_all_scopes_are_needed(needed: tuple[str, ...], had: tuple[str, ...], allowed: bool) -> None:
    assert may_use(Thing(needed), headers(*had)) is allowed


def test_over_http_without_a_verified_token_what_needs_scopes_is_closed() -> None:
    assert not may_use(Thing(("a",)), headers(authenticated=False))
    assert may_use(Thing(), headers(authenticated=False))


def test_without_http_there_is_no_authentication_and_everything_is_open() -> None:
    assert may_use(Thing(("a",)), None)


def test_the_sender_of_a_request_has_the_scopes_of_its_token_and_all_where_there_is_no_http() -> None:
    assert scopes_of(headers("a", "b")) == {"a", "b"}
    assert scopes_of(headers(authenticated=False)) == frozenset()
    assert scopes_of(None) is None
