"""Verifying access tokens: the interface of a verifier, and the verified token of the request that is being served."""

from contextvars import ContextVar
from typing import Protocol

from bespeak.protocol.callers import AccessToken
from bespeak.server.auth.auth_settings import without_root_slash


class TokenVerifier(Protocol):
    """Decides whether an access token is valid, and says what it allows."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """The verified token; `None` if it is not valid.

        `AccessToken.resource` must be the URL of the server that the token was issued for, unless
        `AuthSettings(validate_token_resource=False)` is set. Scopes that are implied by others belong in `AccessToken.scopes`.
        """
        ...


class TokensUnverifiable(Exception):
    """Tokens cannot be verified at the moment, for example because the issuer cannot be reached. Clients get status 503."""


# Tools of the official SDK take no parameter for it, and call `get_access_token()`.
current_access_token: ContextVar[AccessToken | None] = ContextVar("bespeak_access_token", default=None)


def get_access_token() -> AccessToken | None:
    """The access token of the HTTP request that is being served; `None` without authentication. See also `ctx.access_token`."""
    return current_access_token.get()


def principal_of(token: AccessToken, issuer_url: str) -> str | None:
    """The issuer with the subject, or with the client if there is no subject; `None` if the token names neither.

    An issuer has no fragment, so two principals cannot have the same text.
    """
    claims = token.claims or {}
    named, subject = claims.get("iss"), token.subject or claims.get("sub")
    issuer = without_root_slash(named) if isinstance(named, str) else issuer_url
    if "#" in issuer:
        return None
    if isinstance(subject, str) and subject:
        return f"{issuer}#sub={subject}"
    return f"{issuer}#client_id={token.client_id}" if token.client_id else None
