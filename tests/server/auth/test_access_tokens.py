"""Principals, and what `AccessToken` does not show."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bespeak.protocol.callers import Caller
from bespeak.server.auth import AccessToken, get_access_token
from bespeak.server.auth.access_tokens import principal_of
from tests.server.auth.issuers import ISSUER


def token(**changed: Any) -> AccessToken:
    changed = {"token": "secret-token", "client_id": "agent", "scopes": [], **changed}
    return AccessToken(**changed)


@pytest.mark.parametrize(
    ("changed", "principal"),
    [
        ({"subject": "alice"}, f"{ISSUER}#sub=alice"),
        ({"claims": {"sub": "alice"}}, f"{ISSUER}#sub=alice"),
        ({"subject": "alice", "claims": {"iss": "https://other.example.com"}}, "https://other.example.com#sub=alice"),
        ({"subject": "alice", "claims": {"iss": f"{ISSUER}/"}}, f"{ISSUER}#sub=alice"),
        ({}, f"{ISSUER}#client_id=agent"),
        ({"subject": ""}, f"{ISSUER}#client_id=agent"),
        ({"claims": {"sub": 7}}, f"{ISSUER}#client_id=agent"),
        ({"client_id": ""}, None),
        ({"subject": "alice", "claims": {"iss": "https://a.example#sub=x"}}, None),
    ],
)
def test_a_principal_is_issuer_and_subject_or_else_the_client(changed: dict[str, Any], principal: str | None) -> None:
    assert principal_of(token(**changed), ISSUER) == principal


names = st.text(alphabet="#=ab/subclient_id", max_size=12)


@given(st.lists(st.tuples(names, names, names), min_size=2, max_size=2, unique=True))
def test_two_callers_never_have_the_same_principal(callers: list[tuple[str, str, str]]) -> None:
    def told(issuer: str, subject: str, client: str) -> tuple[Any, ...]:
        return (issuer, "sub", subject) if subject else (issuer, "client", client)

    first, second = callers
    found = [
        principal_of(token(subject=subject, client_id=client, claims={"iss": f"https://{issuer}.example"}), ISSUER)
        for issuer, subject, client in callers
    ]
    if None not in found and told(*first) != told(*second):
        assert found[0] != found[1]


def test_a_token_and_its_claims_are_not_shown() -> None:
    shown = repr(token(subject="alice", claims={"email": "alice@example.com"}, resource="https://r.example"))
    assert shown == "AccessToken(client_id='agent', scopes=[], expires_at=None)"


def test_an_invalid_token_object_does_not_show_its_token() -> None:
    with pytest.raises(ValidationError) as caught:
        AccessToken(token=b"\xffsecret-token", client_id="agent", scopes="all")  # pyright: ignore[reportArgumentType]
    assert "secret" not in str(caught.value)


def test_outside_a_request_there_is_no_access_token() -> None:
    assert get_access_token() is None


@pytest.mark.parametrize(("expires_at", "left"), [(None, None), (1010, 10.0), (1000, 1.0), (900, 1.0)])
def test_a_stream_may_stay_open_until_the_token_expires(expires_at: int | None, left: float | None) -> None:
    assert Caller("p", frozenset(), token(expires_at=expires_at)).seconds_left(1000.0) == left
