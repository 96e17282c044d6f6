"""`WWW-Authenticate`: what each challenge tells a client."""

from bespeak.server.auth.challenges import Challenges
from tests.server.auth.issuers import METADATA

PLAIN = Challenges(METADATA, ())
SCOPED = Challenges(METADATA, ("orders", "profile"))


def test_without_a_token_no_error_is_named() -> None:
    assert (PLAIN.no_token.status, PLAIN.no_token.header) == (401, f'Bearer resource_metadata="{METADATA}"'.encode())
    assert SCOPED.no_token.header == f'Bearer scope="orders profile", resource_metadata="{METADATA}"'.encode()
    assert PLAIN.no_token.reason.startswith("this server requires an access token: send it in the header")


def test_a_token_that_is_not_valid_is_named_so() -> None:
    assert PLAIN.invalid_token.status == 401
    assert PLAIN.invalid_token.header == f'Bearer error="invalid_token", resource_metadata="{METADATA}"'.encode()
    assert PLAIN.invalid_token.reason == "the access token is not valid or has expired; get a new one"


def test_a_repeated_header_is_an_invalid_request() -> None:
    assert PLAIN.repeated_header.status == 400
    assert b'error="invalid_request"' in (PLAIN.repeated_header.header or b"")
    assert PLAIN.repeated_header.reason == "the header Authorization occurs more than once"


def test_a_missing_scope_names_all_scopes_that_the_request_needs() -> None:
    challenge = SCOPED.insufficient_scope(["refunds", "orders"])
    expected = f'Bearer error="insufficient_scope", scope="orders profile refunds", resource_metadata="{METADATA}"'
    assert (challenge.status, challenge.header) == (403, expected.encode())
    assert challenge.reason == "the access token lacks a scope; this request needs: orders profile refunds"


def test_a_fault_of_the_server_is_no_challenge() -> None:
    assert (PLAIN.unverifiable.status, PLAIN.unverifiable.header) == (503, None)
    assert PLAIN.unverifiable.reason == "access tokens cannot be verified at the moment; try again later"
    assert (PLAIN.crashed.status, PLAIN.crashed.reason) == (500, "the access token could not be verified")
