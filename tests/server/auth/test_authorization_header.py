"""The `Authorization` header: which values are a bearer token, and which are not."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.headers import Headers
from bespeak.server.auth.authorization_header import MalformedToken, RepeatedHeader, bearer_token


def headers(*values: bytes) -> Headers:
    return Headers([(b"host", b"x"), *((b"authorization", value) for value in values)])


@pytest.mark.parametrize("value", [b"Bearer abc", b"bearer abc", b"BEARER   abc", b" Bearer abc\t"])
def test_a_bearer_token_is_found(value: bytes) -> None:
    assert bearer_token(headers(value)) == "abc"


def test_every_character_that_a_token_may_have_is_accepted() -> None:
    assert bearer_token(headers(b"Bearer aZ09-._~+/==")) == "aZ09-._~+/=="


@pytest.mark.parametrize("value", [b"Basic YTpi", b"abc", b"", b"Bearerabc", b"Bearer,abc", b"xBearer abc"])
def test_another_scheme_is_no_bearer_token(value: bytes) -> None:
    assert bearer_token(headers(value)) is None


def test_a_request_may_have_no_such_header() -> None:
    assert bearer_token(headers()) is None


@pytest.mark.parametrize(
    "value",
    [b"Bearer", b"Bearer ", b"Bearer a b", b"Bearer a,b", b"Bearer =", b'Bearer "a"', b"Bearer \xff", b"Bearer\tabc"],
)
def test_a_malformed_token_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedToken):
        bearer_token(headers(value))


def test_a_repeated_header_is_refused_even_if_both_are_the_same() -> None:
    with pytest.raises(RepeatedHeader):
        bearer_token(headers(b"Bearer abc", b"Bearer abc"))


@given(st.binary())
@example(b"Bearer a\n")
@example(b"Bearer a\r\nx: y")
def test_whatever_is_sent_gives_a_token_of_the_grammar_or_nothing(value: bytes) -> None:
    try:
        token = bearer_token(headers(value))
    except MalformedToken:
        return
    assert token is None or re.fullmatch(r"[A-Za-z0-9\-._~+/]+=*", token)


@given(st.from_regex(r"[A-Za-z0-9\-._~+/]{1,40}={0,2}", fullmatch=True), st.integers(1, 5))
def test_a_token_arrives_as_it_was_sent(token: str, spaces: int) -> None:
    assert bearer_token(headers(b"Bearer" + b" " * spaces + token.encode())) == token
