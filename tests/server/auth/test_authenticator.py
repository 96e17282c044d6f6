"""From headers to a caller, or to a challenge."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from bespeak.protocol.callers import Caller
from bespeak.protocol.headers import Headers
from bespeak.server.auth import AccessToken, TokensUnverifiable, get_access_token
from bespeak.server.auth.authenticator import BearerAuthenticator
from bespeak.transports.interfaces import Challenge
from tests.server.auth.issuers import ISSUER, RESOURCE, settings

NOW = 1_800_000_000.0


class Verifier:
    """Accepts the token `good` as an author's verifier might, with whatever the test wants it to say."""

    def __init__(self, outcome: Any = None, **changed: Any) -> None:
        self._outcome = outcome
        self._token: dict[str, Any] = {
            "client_id": "agent",
            "scopes": ["orders"],
            "resource": RESOURCE,
            "subject": "alice",
            **changed,
        }

    async def verify_token(self, token: str) -> AccessToken | None:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        if self._outcome is not None:
            return self._outcome
        return AccessToken(token=token, **self._token) if token == "good" else None


def needed(method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    return ("refunds",) if method == "tools/call" else ()


def authenticator(verifier: Verifier, **changed: Any) -> BearerAuthenticator:
    return BearerAuthenticator(settings(**changed), verifier, "Shop", needed, lambda: NOW)


def sent(*values: str) -> Headers:
    return Headers([(b"authorization", value.encode()) for value in values])


async def refused(verifier: Verifier, **changed: Any) -> int:
    found = await authenticator(verifier, **changed).authenticate(sent("Bearer good"))
    assert isinstance(found, Challenge)
    return found.status


async def test_a_verified_token_names_the_caller() -> None:
    found = await authenticator(Verifier()).authenticate(sent("Bearer good"))
    assert isinstance(found, Caller)
    assert (found.principal, found.scopes) == (f"{ISSUER}#sub=alice", {"orders"})
    assert found.access_token.token == "good"
    assert get_access_token() is found.access_token


@pytest.mark.parametrize(
    ("headers", "status", "error"),
    [
        (sent(), 401, b"resource_metadata"),
        (sent("Basic YTpi"), 401, b"resource_metadata"),
        (sent("Bearer bad"), 401, b'error="invalid_token"'),
        (sent("Bearer"), 401, b'error="invalid_token"'),
        (sent("Bearer good", "Bearer good"), 400, b'error="invalid_request"'),
    ],
)
async def test_a_request_without_a_valid_token_is_challenged(headers: Headers, status: int, error: bytes) -> None:
    found = await authenticator(Verifier()).authenticate(headers)
    assert isinstance(found, Challenge)
    assert found.status == status
    assert (found.header or b"").removeprefix(b"Bearer ").startswith(error)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"expires_at": int(NOW) - 30}, "it has expired"),
        ({"resource": None}, "the token verifier does not say which server it was issued for"),
        ({"resource": "https://other.example.com/mcp"}, "it was issued for another server"),
        ({"subject": None, "client_id": ""}, "it names no subject and no client"),
    ],
)
async def test_what_a_verifier_accepts_is_checked_all_the_same(
    changed: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await refused(Verifier(**changed)) == 401
    assert caplog.messages[0].startswith(f"refused an access token: {reason}")


@pytest.mark.parametrize("changed", [{"expires_at": int(NOW) - 29}, {"expires_at": None}])
async def test_a_token_that_has_not_expired_is_accepted(changed: dict[str, Any]) -> None:
    assert isinstance(await authenticator(Verifier(**changed)).authenticate(sent("Bearer good")), Caller)


async def test_the_check_of_the_resource_can_be_turned_off() -> None:
    found = authenticator(Verifier(resource=None), validate_token_resource=False)
    assert isinstance(await found.authenticate(sent("Bearer good")), Caller)


async def test_a_root_url_may_end_with_a_slash() -> None:
    verifier = Verifier(resource="https://mcp.example.com/")
    found = authenticator(verifier, resource_server_url="https://mcp.example.com")
    assert isinstance(await found.authenticate(sent("Bearer good")), Caller)


async def test_a_token_without_the_required_scopes_is_not_enough() -> None:
    assert await refused(Verifier(), required_scopes=["orders", "profile"]) == 403
    found = authenticator(Verifier(), required_scopes=["orders"])
    assert isinstance(await found.authenticate(sent("Bearer good")), Caller)


async def test_tokens_that_cannot_be_verified_now_are_not_called_invalid() -> None:
    assert await refused(Verifier(TokensUnverifiable())) == 503


@pytest.mark.parametrize("outcome", [RuntimeError("good is the token"), "good"])
async def test_a_verifier_that_fails_is_logged_without_its_message(
    outcome: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert await refused(Verifier(outcome)) == 500
    kind = type(outcome).__name__ if isinstance(outcome, Exception) else "TypeError"
    assert caplog.messages[0].startswith(f"the token verifier failed with {kind}\n")
    assert "in authenticate" in caplog.text
    assert "good is the token" not in caplog.text


async def test_a_request_may_need_more_scopes() -> None:
    found = authenticator(Verifier(scopes=["orders", "refunds"]), required_scopes=["orders"])
    caller = await found.authenticate(sent("Bearer good"))
    assert isinstance(caller, Caller)
    assert found.step_up(caller, "tools/call", {}) is None
    assert found.step_up(caller, "tools/list", {}) is None
    lacking = Caller(caller.principal, frozenset({"orders"}), caller.access_token)
    for other in (lacking, None):
        challenge = found.step_up(other, "tools/call", {})
        assert challenge is not None
        assert challenge.status == 403
        assert b'scope="orders refunds"' in (challenge.header or b"")
